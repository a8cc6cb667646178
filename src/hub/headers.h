#pragma once
// The headers of an answer, and the few formats in them that twinkle reads. All are hostile: an
// unreadable one counts as absent.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace twinkle::hub {

class Headers {
public:
    void add(std::string_view name, std::string_view value);
    // The first header of that name, case-insensitively.
    std::optional<std::string_view> get(std::string_view name) const;
    std::size_t size() const { return fields_.size(); }

private:
    std::vector<std::pair<std::string, std::string>> fields_;  // names in lower case
};

// The target of rel="next" in a Link header.
std::optional<std::string> next_link(std::string_view link);

// Retry-After: seconds, or a date relative to `now`.
std::optional<std::chrono::seconds> retry_after(std::string_view value,
                                                std::chrono::system_clock::time_point now);

// The `ratelimit` header, `"api";r=0;t=12`: the time until the window ends, if nothing is left.
std::optional<std::chrono::seconds> exhausted_for(std::string_view ratelimit);

// An ETag without W/ and quotes.
std::string plain_etag(std::string_view value);

// "bytes 5-9/10": first, last, total (none for *).
struct ContentRange {
    std::uint64_t first = 0, last = 0;
    std::optional<std::uint64_t> total;
};
std::optional<ContentRange> content_range(std::string_view value);

}  // namespace twinkle::hub
