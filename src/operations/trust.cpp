#include "operations/trust.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "twinkle/error.h"

namespace twinkle::operations {
namespace {

std::string publisher_of(const std::string& repo_id) {
    return repo_id.substr(0, repo_id.find('/'));
}

bool is_allowed(const std::string& repo_id, std::span<const std::string> trusted) {
    return std::any_of(trusted.begin(), trusted.end(), [&](const std::string& entry) {
        // As it is typed after --trust, with its state.
        const auto name = entry.substr(0, entry.find('@'));
        return name == publisher_of(repo_id) || base::glob_match(name, repo_id);
    });
}

}  // namespace

std::vector<std::string> trusted_by(const Project* project, std::span<const std::string> more) {
    auto trusted = project != nullptr ? project->manifest.trust : std::vector<std::string>{};
    trusted.insert(trusted.end(), more.begin(), more.end());
    return trusted;
}

void require_trust(Workplace& place, std::span<const std::string> repositories,
                   std::span<const std::string> trusted) {
    std::set<std::string> publishers;
    std::set<std::string> open;
    for (const auto& repo_id : repositories) {
        if (!is_allowed(repo_id, trusted)) {
            open.insert(repo_id);
            publishers.insert(publisher_of(repo_id));
        }
    }
    if (open.empty()) {
        return;
    }
    if (place.offline()) {
        place.listener().warn(
            "offline, so nobody can be asked whether " +
            base::join(std::vector<std::string>(publishers.begin(), publishers.end()), ", ") +
            " can be trusted: what is in the cache is used");
        return;
    }
    const std::vector<std::string> names(publishers.begin(), publishers.end());
    const auto answers = place.hub().are_trusted_publishers(names);
    for (const auto& repo_id : open) {
        const auto at = std::lower_bound(names.begin(), names.end(), publisher_of(repo_id));
        if (!answers[static_cast<std::size_t>(at - names.begin())]) {
            throw Error(ErrorCode::refused,
                        {.what = "the publisher " + publisher_of(repo_id) + " is not trusted",
                         .where = repo_id,
                         .why = "a kernel is code that runs with your rights, and the Hub does not "
                                "vouch for this publisher",
                         .hint = "after looking at it: trust = [\"" + repo_id +
                                 "\"] in the manifest, or --trust " + repo_id + " this once"});
        }
    }
}

}  // namespace twinkle::operations
