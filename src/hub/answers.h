#pragma once
// The JSON of the Hub, checked. `url` is for messages only. All throw Error(unreachable) for what
// no Hub says.

#include <set>
#include <string>
#include <string_view>

#include "hub/api.h"

namespace twinkle::hub {

Refs read_refs(std::string_view body, const std::string& url);
std::string read_commit(std::string_view body, const std::string& url);
bool read_trust(std::string_view body, const std::string& url);

// The pages of one listing: what they hold together is checked together.
class TreePages {
public:
    explicit TreePages(std::string folder) : folder_(std::move(folder)) {}

    void add(std::string_view body, const std::string& url);
    // The page that `link` names, if there is another. Of the same origin, not seen before, and
    // within bounds.
    std::optional<std::string> next(const Headers& headers, const std::string& url);
    // Sorted; no file is a folder too.
    Tree take(const std::string& url);

private:
    std::string folder_;
    Tree tree_;
    std::set<std::string, std::less<>> seen_urls_;
    std::size_t pages_ = 0;
    std::uint64_t total_size_ = 0;
};

}  // namespace twinkle::hub
