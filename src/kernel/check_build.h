#pragma once
// One build against the rules of a Hub kernel. Nothing is thrown for what is wrong with it: all of
// it is found at once.

#include <filesystem>
#include <optional>
#include <string>

#include "kernel/check_abi.h"
#include "kernel/finding.h"

namespace twinkle::kernel {

enum class Audience { hub, here };  // for whom a build is made

struct BuildCheck {
    std::string variant;               // empty: a plain package
    std::optional<Audience> audience;  // none: the Hub, unless nothing says who built it
    SymbolLimits machine;              // of this machine
    std::string shown;                 // in front of file names, for messages: "build/<variant>/"
};

struct CheckedBuild {
    std::optional<Metadata> metadata;  // if it can be read
    std::vector<std::string> archs;    // of the embedded GPU code
    std::vector<std::string> operators{};
    Audience audience = Audience::hub;
};

CheckedBuild check_build(const std::filesystem::path& folder, const BuildCheck& check,
                         Findings& findings);

}  // namespace twinkle::kernel
