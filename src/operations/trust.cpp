#include "operations/trust.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "project/trust.h"
#include "twinkle/error.h"

namespace twinkle::operations {
std::vector<std::string> trusted_by(const Project* project, std::span<const std::string> more) {
    auto trusted = project != nullptr ? project->manifest.trust : std::vector<std::string>{};
    trusted.insert(trusted.end(), more.begin(), more.end());
    return trusted;
}

void require_trust(Context& context, std::span<const std::string> repositories,
                   std::span<const std::string> trusted) {
    std::set<std::string> publishers;
    std::set<std::string> open;
    for (const auto& repo_id : repositories) {
        if (!project::is_trusted(repo_id, trusted)) {
            open.insert(repo_id);
            publishers.insert(project::publisher_of(repo_id));
        }
    }
    if (open.empty()) {
        return;
    }
    if (context.offline()) {
        context.listener().warn(
            "offline, so nobody can be asked whether " +
            base::join(std::vector<std::string>(publishers.begin(), publishers.end()), ", ") +
            " can be trusted: what is in the cache is used");
        return;
    }
    const std::vector<std::string> names(publishers.begin(), publishers.end());
    const auto answers = context.hub().are_trusted_publishers(names);
    for (const auto& repo_id : open) {
        const auto at =
            std::lower_bound(names.begin(), names.end(), project::publisher_of(repo_id));
        if (!answers[static_cast<std::size_t>(at - names.begin())]) {
            throw Error(
                ErrorCode::refused,
                {.what = "the publisher " + project::publisher_of(repo_id) + " is not trusted",
                 .where = repo_id,
                 .why = "a kernel is code that runs with your rights, and the Hub does not "
                        "vouch for this publisher",
                 .hint = "after looking at it: trust = [\"" + repo_id +
                         "\"] in the manifest, or --trust " + repo_id + " this once"});
        }
    }
}

}  // namespace twinkle::operations
