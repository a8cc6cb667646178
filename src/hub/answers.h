#pragma once
// Parses the Hub's JSON, and checks it. `url` is for messages only. All throw Error(unreachable)
// for answers that no Hub gives.

#include <set>
#include <string>
#include <string_view>

#include "hub/api.h"

namespace twinkle::hub {

Refs read_refs(std::string_view body, const std::string& url);
std::string read_commit(std::string_view body, const std::string& url);
bool read_trust(std::string_view body, const std::string& url);

// The pages of one listing, checked as a whole.
class TreePages {
public:
    explicit TreePages(std::string folder) : folder_(std::move(folder)) {}

    void add(std::string_view body, const std::string& url);
    // The next page according to `link`, if there is one: of the same origin, not seen before, and
    // within bounds.
    std::optional<std::string> next(const Headers& headers, const std::string& url);
    // Sorted; no path is both a file and a folder.
    Tree take(const std::string& url);

private:
    std::string folder_;
    Tree tree_;
    std::set<std::string, std::less<>> seen_urls_;
    std::size_t pages_ = 0;
    std::uint64_t total_size_ = 0;
};

}  // namespace twinkle::hub
