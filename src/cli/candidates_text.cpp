#include "cli/candidates_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/report_parts.h"

namespace twinkle::cli {
namespace {

using base::Json;

// The candidates that were not taken, or "" if the site has only its own kernel.
std::string others_of(const Json& site) {
    const auto& candidates = list_of(site, "candidates");
    if (candidates.size() < 2) {
        return "";
    }
    std::vector<std::string> others;
    for (const auto& one : candidates) {
        const auto because = shown_text(one, "because");
        if (!because.empty()) {
            others.push_back(fmt::format("{} ({})", shown_text(one, "kernel"), because));
        }
    }
    return base::join(others, ", ");
}

}  // namespace

std::string candidates_text(const Json& report, std::size_t columns) {
    std::vector<std::pair<std::pair<std::string, std::string>, std::size_t>> groups;
    for (const auto& site : sites_of(report)) {
        const auto others = others_of(site);
        if (others.empty()) {
            continue;
        }
        const std::pair key(short_name(shown_text(site, "of")), others);
        const auto known = std::find_if(groups.begin(), groups.end(),
                                        [&](const auto& group) { return group.first == key; });
        known == groups.end() ? void(groups.emplace_back(key, 1)) : void(++known->second);
    }
    std::string text;
    for (const auto& [key, sites] : groups) {
        const auto line = fmt::format("{} ({} {}): not {}", key.first, sites,
                                      sites == 1 ? "site" : "sites", key.second);
        text += (columns == 0 ? line : base::wrap(line, columns, 0)) + "\n";
    }
    return text;
}

}  // namespace twinkle::cli
