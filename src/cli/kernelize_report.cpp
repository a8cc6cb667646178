#include "cli/kernelize_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/json_fields.h"

namespace twinkle::cli {
namespace {

using base::Json;
using base::Style;
using base::Table;

std::optional<double> number_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? std::optional(found->get<double>())
                                                       : std::nullopt;
}

// "1.2e-7": two digits, and no more of the exponent than there is.
std::string error_text(const std::optional<double>& value) {
    if (!value) {
        return {};
    }
    auto text = *value == 0 ? "0" : fmt::format("{:.1e}", *value);
    const auto exponent = text.find_first_of("+-", 1);
    if (exponent != std::string::npos && text[exponent + 1] == '0') {
        text.erase(exponent + 1, 1);
    }
    return text;
}

std::string time_text(const std::optional<double>& microseconds) {
    if (!microseconds) {
        return {};
    }
    const double us = *microseconds;
    return us < 1e3   ? fmt::format("{:.0f} us", us)
           : us < 1e6 ? fmt::format("{:.3g} ms", us / 1e3)
                      : fmt::format("{:.3g} s", us / 1e6);
}

Style status_style(const std::string& status) {
    return status == "replaced" ? Style::green : status == "reverted" ? Style::red : Style::yellow;
}

// The last component of a dotted name.
std::string short_name(const std::string& name) {
    return name.substr(name.rfind('.') + 1);
}

const Json& sites_of(const Json& report) {
    static const Json none = Json::array();
    const auto found = report.find("sites");
    return found != report.end() && found->is_array() ? *found : none;
}

// "twinkle-pack: " where every kernel begins with it: it need not be said in every line.
std::string common_kernel(const Json& report) {
    std::string common;
    for (const auto& site : sites_of(report)) {
        const auto kernel = shown_text(site, "kernel");
        const auto end = kernel.find(": ");
        if (kernel.empty()) {
            continue;
        }
        const auto prefix = end == std::string::npos ? "" : kernel.substr(0, end + 2);
        if (prefix.empty() || (!common.empty() && prefix != common)) {
            return {};
        }
        common = prefix;
    }
    return common;
}

// Reasons that many sites share are said once, below the table.
class Notes {
public:
    std::string number(const std::string& text) {
        if (text.empty()) {
            return {};
        }
        auto found = std::find(texts_.begin(), texts_.end(), text);
        if (found == texts_.end()) {
            found = texts_.insert(texts_.end(), text);
        }
        return fmt::format("[{}]", found - texts_.begin() + 1);
    }
    std::string render(std::size_t columns) const {
        std::string text = texts_.empty() ? "" : "\n";
        for (std::size_t i = 0; i < texts_.size(); ++i) {
            const auto label = fmt::format("[{}] ", i + 1);
            text +=
                label + base::wrap(texts_[i], columns, label.size()).substr(label.size()) + "\n";
        }
        return text;
    }

private:
    std::vector<std::string> texts_;
};

Table site_table(const Json& report, Notes* notes, const std::string& implied) {
    const auto right = Table::Align::right;
    Table table({{"site", Table::Align::left, Table::Fit::tail},
                 {"of", Table::Align::left, Table::Fit::tail},
                 {"status"},
                 {"kernel", Table::Align::left, Table::Fit::tail},
                 {"error", right},
                 {"allowed", right},
                 {"before", right},
                 {"after", right},
                 {notes != nullptr ? "why" : "because"}});
    for (const auto& site : sites_of(report)) {
        if (!site.is_object()) {
            continue;
        }
        const auto status = shown_text(site, "status");
        const auto because = shown_text(site, "because");
        const auto name = shown_text(site, "site");
        const auto kernel = shown_text(site, "kernel");
        table.add({{name.empty() ? "(the model)" : name},
                   {short_name(shown_text(site, "of"))},
                   {status, status_style(status)},
                   {kernel.substr(kernel.starts_with(implied) ? implied.size() : 0)},
                   {error_text(number_of(site, "max_error"))},
                   {error_text(number_of(site, "allowed_error"))},
                   {time_text(number_of(site, "time_before_us"))},
                   {time_text(number_of(site, "time_after_us"))},
                   {notes != nullptr ? notes->number(because) : because}});
    }
    return table;
}

std::size_t count(const Json& report, const char* status) {
    std::size_t number = 0;
    for (const auto& site : sites_of(report)) {
        number += site.is_object() && shown_text(site, "status") == status ? 1 : 0;
    }
    return number;
}

std::string totals(const Json& report, const std::string& implied) {
    std::string text = fmt::format("\n{} replaced, {} kept, {} put back", count(report, "replaced"),
                                   count(report, "kept"), count(report, "reverted"));
    if (!implied.empty()) {
        text += "; every kernel is from " + implied.substr(0, implied.size() - 2);
    }
    for (const char* key : {"mode", "device"}) {
        const auto value = shown_text(report, key);
        text += value.empty() ? "" : fmt::format("; {} {}", key, value);
    }
    return text + "\n";
}

std::string whole_model(const Json& report) {
    const auto whole = report.find("whole");
    if (whole == report.end() || !whole->is_object()) {
        return {};
    }
    std::vector<std::string> parts;
    if (const auto error = number_of(*whole, "max_error")) {
        const auto allowed = error_text(number_of(*whole, "allowed_error"));
        parts.push_back("error " + error_text(error) +
                        (allowed.empty() ? "" : " (allowed " + allowed + ")"));
    }
    const auto before = number_of(*whole, "time_before_us");
    const auto after = number_of(*whole, "time_after_us");
    if (before && after) {
        parts.push_back(time_text(before) + " before, " + time_text(after) + " after" +
                        (*after > 0 ? fmt::format(" ({:.2f}x)", *before / *after) : ""));
    }
    const auto because = shown_text(*whole, "because");
    if (!because.empty()) {
        parts.push_back(because);
    }
    return parts.empty() ? "" : "whole model: " + base::join(parts, "; ") + "\n";
}

}  // namespace

std::string kernelize_table(const Json& report, std::size_t columns, bool color) {
    Notes notes;
    std::string implied;
    auto table = site_table(report, nullptr, {});
    if (columns > 0 && table.width() > columns) {
        implied = common_kernel(report);
        table = site_table(report, &notes, implied);
    }
    const std::string sites = table.empty() ? "no site: the mapping binds no class of this model\n"
                                            : table.render(columns, color);
    return sites + notes.render(columns) + totals(report, implied) + whole_model(report);
}

}  // namespace twinkle::cli
