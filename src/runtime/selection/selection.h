#pragma once
// Which candidate of a mapping serves a site, or why none does.

#include "runtime/graph/keep_reason.h"
#include "runtime/graph/sites.h"
#include "twinkle/kernelize.h"

#include <tl/expected.hpp>

#include <optional>
#include <string>

namespace twinkle::runtime {

// For a layer, a function or a pattern: what is of the others is null, and the kernel may be.
struct Choice {
    const MappedLayer* layer = nullptr;
    const LayerCandidate* candidate = nullptr;
    const MappedKernel* kernel = nullptr;
    const MappedFunction* function = nullptr;
    const FunctionCandidate* implementation = nullptr;
    const MappedPattern* pattern = nullptr;

    bool operator==(const Choice&) const = default;
};

struct SelectionContext {
    std::string mode;               // normalized
    std::string device;             // cpu, cuda, …
    std::optional<int> capability;  // major * 10 + minor
};

// Whether the binding names this class.
bool binds(const MappedLayer& layer, const std::string& class_name);

// Device, capability range (the smallest that contains the device wins), mode and flags, in this
// order.
tl::expected<Choice, KeepReason> choose(const Mapping& mapping, const MappedLayer& layer,
                                        const SelectionContext& context);

tl::expected<Choice, KeepReason> choose(const Mapping& mapping, const MappedFunction& function,
                                        const SelectionContext& context);

tl::expected<Choice, KeepReason> choose(const Mapping& mapping, const MappedPattern& pattern,
                                        const SelectionContext& context);

// The conditions of a binding on one instance: its path, attributes and submodules. Nothing: they
// hold.
std::optional<std::string> unmet_condition(const MappedLayer& layer, const Instance& instance);

}  // namespace twinkle::runtime
