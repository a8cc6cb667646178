#include "cli/report_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/json_fields.h"

namespace twinkle::cli {

using base::Json;
using base::Style;

std::optional<double> number_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? std::optional(found->get<double>())
                                                       : std::nullopt;
}

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
    return us < 10    ? fmt::format("{:.1f} us", us)
           : us < 1e3 ? fmt::format("{:.0f} us", us)
           : us < 1e6 ? fmt::format("{:.3g} ms", us / 1e3)
                      : fmt::format("{:.3g} s", us / 1e6);
}

Style status_style(const std::string& status) {
    return status == "replaced" ? Style::green : status == "reverted" ? Style::red : Style::yellow;
}

std::string short_name(const std::string& name) {
    return name.substr(name.rfind('.') + 1);
}

std::string shown_site(const Json& site) {
    const auto name = shown_text(site, "site");
    return name.empty() ? "(the model)" : name;
}

std::size_t count_of(const Json& report, const std::string& status) {
    std::size_t number = 0;
    for (const auto& site : sites_of(report)) {
        number += site.is_object() && shown_text(site, "status") == status ? 1 : 0;
    }
    return number;
}

std::string Notes::number(const std::string& text) {
    if (text.empty()) {
        return {};
    }
    auto found = std::find(texts_.begin(), texts_.end(), text);
    if (found == texts_.end()) {
        found = texts_.insert(texts_.end(), text);
    }
    return fmt::format("[{}]", found - texts_.begin() + 1);
}

std::string Notes::render(std::size_t columns) const {
    std::string text = texts_.empty() ? "" : "\n";
    for (std::size_t i = 0; i < texts_.size(); ++i) {
        const auto label = fmt::format("[{}] ", i + 1);
        text += label + base::wrap(texts_[i], columns, label.size()).substr(label.size()) + "\n";
    }
    return text;
}

namespace {

// "twinkle-pack: " if every kernel begins with it: the lines need not repeat it.
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

std::string totals_text(const Json& report, const std::string& implied) {
    std::string text =
        fmt::format("\n{} replaced, {} kept, {} put back", count_of(report, "replaced"),
                    count_of(report, "kept"), count_of(report, "reverted"));
    if (!implied.empty()) {
        text += "; every kernel is from " + implied.substr(0, implied.size() - 2);
    }
    for (const char* key : {"mode", "device"}) {
        const auto value = shown_text(report, key);
        text += value.empty() ? "" : fmt::format("; {} {}", key, value);
    }
    return text + "\n";
}

}  // namespace

std::string sites_text(const Json& report, const SiteTable& table_of, std::size_t columns,
                       bool color) {
    Notes notes;
    std::string implied;
    auto table = table_of(report, nullptr, {});
    if (columns > 0 && table.width() > columns) {
        implied = common_kernel(report);
        table = table_of(report, &notes, implied);
    }
    const std::string sites = table.empty()
                                  ? "no site: nothing that the mapping names is in this model\n"
                                  : table.render(columns, color);
    return sites + notes.render(columns) + totals_text(report, implied);
}

}  // namespace twinkle::cli
