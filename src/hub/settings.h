#pragma once
// Where the Hub is and how to talk to it, from the environment variables that users of
// huggingface_hub and `kernels` have set already.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "hub/secret.h"
#include "target/machine.h"

namespace twinkle::hub {

struct Proxies {
    std::string http;   // for http:// URLs; empty: none
    std::string https;  // for https:// URLs
    std::string none;   // hosts that are reached without, as curl's no_proxy
};

struct Settings {
    std::string endpoint = "https://huggingface.co";  // no slash at the end
    Secret token;
    bool token_over_http = false;  // may it go to another machine without TLS?
    bool offline = false;
    std::string user_agent;  // empty: none is sent
    bool telemetry = true;
    std::chrono::seconds etag_timeout{10};      // to connect, and silence in a small answer
    std::chrono::seconds download_timeout{10};  // silence in a download
    // The least rate: with fewer bytes a second over this time, all transfers taken together, those
    // that have run this long end. The headers of an answer may take as long.
    std::uint64_t low_speed_limit = 1024;
    std::chrono::seconds low_speed_time{30};
    std::filesystem::path ca_file, ca_folder;  // empty: the system's
    Proxies proxies;
};

// `program_agent`: the program's own part of the user agent, "my-server/2.1". Throws
// Error(malformed) for an impossible endpoint, time or token.
Settings settings_from(const target::Machine& machine, std::string_view program_agent = "");

}  // namespace twinkle::hub
