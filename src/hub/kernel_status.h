#pragma once
// kernel-status.toml: a repository that has moved.

#include <string>
#include <string_view>

namespace twinkle::hub {

struct Redirect {
    std::string repo_id;
    std::string revision = "main";
};

// Throws Error(malformed) for any other content.
Redirect read_kernel_status(std::string_view text, std::string_view origin);

}  // namespace twinkle::hub
