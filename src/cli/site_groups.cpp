#include "cli/site_groups.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/measured_text.h"
#include "cli/report_parts.h"

namespace twinkle::cli {
namespace {

using base::Json;

// A reason without its numbers: they name other layers, other errors, other times.
std::string without_numbers(const std::string& text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
        if (!digit) {
            result += text[i];
        } else if (result.empty() || result.back() != '0') {
            result += '0';
        }
    }
    return result;
}

using Key = std::array<std::string, 6>;

// A replaced site is what its kernel is, whatever its reason says of times.
Key key_of(const Json& site) {
    const auto status = text_of(site, "status");
    return {text_of(site, "kind"),
            text_of(site, "of"),
            status,
            text_of(site, "kernel"),
            text_of(site, "variant"),
            status == "replaced" ? "" : without_numbers(text_of(site, "because"))};
}

std::size_t common_head(const std::vector<std::string>& texts) {
    std::size_t length = texts.front().size();
    for (const auto& text : texts) {
        const auto end =
            std::mismatch(texts.front().begin(), texts.front().end(), text.begin(), text.end());
        length = std::min(length, static_cast<std::size_t>(end.first - texts.front().begin()));
    }
    return length;
}

// One component: "input_layernorm" and "post_attention_layernorm" are "*_layernorm".
std::string glob_of(const std::vector<std::string>& texts) {
    const std::string& first = texts.front();
    if (std::ranges::all_of(texts, [&](const auto& text) { return text == first; })) {
        return first;
    }
    std::vector<std::string> turned;
    std::size_t shortest = first.size();
    for (const auto& text : texts) {
        turned.emplace_back(text.rbegin(), text.rend());
        shortest = std::min(shortest, text.size());
    }
    const auto all_digits = [](const std::string& text) {
        return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    };
    if (std::ranges::all_of(texts, all_digits)) {
        return "*";
    }
    const auto head = std::min(common_head(texts), shortest);
    const auto tail = std::min(common_head(turned), shortest - head);
    return first.substr(0, head) + "*" + first.substr(first.size() - tail);
}

// How much of its bound a site's error takes.
double share_of_bound(const Json& site) {
    const auto error = number_of(site, "max_error");
    const auto allowed = number_of(site, "allowed_error");
    return !error ? -1 : allowed && *allowed > 0 ? *error / *allowed : *error > 0 ? 1e300 : 0;
}

const Json& worst_of(const std::vector<const Json*>& sites) {
    return **std::max_element(sites.begin(), sites.end(), [](const Json* one, const Json* other) {
        return share_of_bound(*one) < share_of_bound(*other);
    });
}

// The parts between semicolons that all reasons have; of the sites that were not replaced, one
// whole reason.
std::string reason_of(const std::vector<const Json*>& sites) {
    const auto first = text_of(*sites.front(), "because");
    if (std::ranges::all_of(sites,
                            [&](const Json* site) { return text_of(*site, "because") == first; })) {
        return first;
    }
    if (text_of(*sites.front(), "status") != "replaced") {
        return "e.g. " + text_of(worst_of(sites), "because");
    }
    std::vector<std::string> shared;
    std::string part;
    for (const auto& text : base::split(first + ";", ';')) {
        part = text.substr(std::min(text.find_first_not_of(' '), text.size()));
        if (!part.empty() && std::ranges::all_of(sites, [&](const Json* site) {
                return (" " + text_of(*site, "because") + ";").find(" " + part + ";") !=
                       std::string::npos;
            })) {
            shared.push_back(part);
        }
    }
    return base::join(shared, "; ");
}

}  // namespace

std::string common_glob(const std::vector<std::string>& names) {
    std::vector<std::vector<std::string>> parts;
    for (const auto& name : names) {
        parts.push_back(base::split(name, '.'));
    }
    const std::size_t count = parts.front().size();
    if (std::ranges::any_of(parts, [&](const auto& one) { return one.size() != count; })) {
        return glob_of(names);
    }
    std::vector<std::string> result;
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<std::string> column;
        for (const auto& one : parts) {
            column.push_back(one[i]);
        }
        result.push_back(glob_of(column));
    }
    return base::join(result, ".");
}

Json summary_of(const std::vector<const Json*>& sites) {
    std::vector<std::string> names;
    std::uint64_t calls = 0;
    for (const Json* site : sites) {
        names.push_back(text_of(*site, "site"));
        calls += count_in(*site, "calls");
    }
    Json summary = *sites.front();
    if (sites.size() > 1) {
        const Json& worst = worst_of(sites);
        for (const char* key : {"max_error", "original_error", "allowed_error"}) {
            const auto found = worst.find(key);
            summary[key] = found != worst.end() ? *found : Json();
        }
        summary["site"] = common_glob(names);
        summary["because"] = reason_of(sites);
        summary["calls"] = calls;
        add_times_together(sites, summary);
    }
    return summary;
}

std::vector<SiteGroup> group_sites(const Json& report) {
    std::vector<SiteGroup> groups;
    std::map<Key, std::size_t> known;
    for (const auto& site : sites_of(report)) {
        if (!site.is_object()) {
            continue;
        }
        const auto [at, first] = known.emplace(key_of(site), groups.size());
        if (first) {
            groups.emplace_back();
        }
        groups[at->second].sites.push_back(&site);
    }
    for (auto& group : groups) {
        group.summary = summary_of(group.sites);
    }
    return groups;
}

}  // namespace twinkle::cli
