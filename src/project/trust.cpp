#include "project/trust.h"

#include <algorithm>

#include "base/text.h"

namespace twinkle::project {

std::string publisher_of(const std::string& repo_id) {
    return repo_id.substr(0, repo_id.find('/'));
}

bool is_trusted(const std::string& repo_id, std::span<const std::string> trusted) {
    return std::any_of(trusted.begin(), trusted.end(), [&](const std::string& entry) {
        const auto name = entry.substr(0, entry.find('@'));
        return name == publisher_of(repo_id) || base::glob_match(name, repo_id);
    });
}

}  // namespace twinkle::project
