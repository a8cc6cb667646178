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

std::string status_text(const std::string& status) {
    return status == "reverted" ? "put back" : status;
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

std::string group_title(std::size_t count, const Json& site, std::size_t digits) {
    const auto of = short_name(shown_text(site, "of"));
    return fmt::format("{:>{}} × {}", count, digits, of.empty() ? "site" : of);
}

std::size_t count_of(const Json& report, const std::string& status) {
    std::size_t number = 0;
    for (const auto& site : sites_of(report)) {
        number += site.is_object() && shown_text(site, "status") == status ? 1 : 0;
    }
    return number;
}

void say_warnings(const Json& report, Console& console) {
    for (const auto& warning : list_of(report, "warnings")) {
        console.warn(warning.is_string() ? warning.get<std::string>() : base::dump_json(warning));
    }
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

}  // namespace twinkle::cli
