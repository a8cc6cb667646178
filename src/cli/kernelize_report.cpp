#include "cli/kernelize_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/report_parts.h"
#include "cli/sites_table.h"

namespace twinkle::cli {
namespace {

using base::Json;

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
    const auto because = shown_text(*whole, "because");
    if (!because.empty()) {
        parts.push_back(because);
    }
    return parts.empty() ? "" : "whole model: " + base::join(parts, "; ") + "\n";
}

// "frozen: it is faster: 1.08x (given), 1.10x (length 1)"
std::string frozen_model(const Json& report) {
    const Json& frozen = object_of(report, "frozen");
    if (frozen.empty()) {
        return {};
    }
    std::vector<std::string> sizes;
    for (const auto& size : list_of(frozen, "sizes")) {
        if (const auto ratio = number_of(object_of(size, "speedup"), "median")) {
            sizes.push_back(fmt::format("{:.2f}x ({})", *ratio, shown_text(size, "size")));
        }
    }
    const bool chosen = frozen.value("chosen", Json()) == Json(true);
    return std::string(chosen ? "frozen: " : "not frozen: ") + shown_text(frozen, "because") +
           (sizes.empty() ? "" : ": " + base::join(sizes, ", ")) + "\n";
}

std::string places(std::size_t number) {
    return fmt::format("{} {}", number, number == 1 ? "place" : "places");
}

std::size_t count_in(const Json& constants, const char* key) {
    return static_cast<std::size_t>(number_of(constants, key).value_or(0));
}

std::string joined(const Json& constants, const char* key) {
    std::vector<std::string> words;
    for (const auto& word : list_of(constants, key)) {
        words.push_back(word.is_string() ? word.get<std::string>() : "");
    }
    return base::join(words, ", ");
}

// "4 in Model.forward, 1 in Attention.forward, …"
std::string methods_of(const Json& constants) {
    std::vector<std::string> parts;
    const auto methods = constants.find("methods");
    const Json none = Json::object();
    for (const auto& [method, number] :
         (methods != constants.end() && methods->is_object() ? *methods : none).items()) {
        const auto dot = method.rfind('.');
        const auto name = dot == std::string::npos
                              ? method
                              : short_name(method.substr(0, dot)) + method.substr(dot);
        const auto text = fmt::format(
            "{} in {}", number.is_number_unsigned() ? number.get<std::size_t>() : 0, name);
        if (std::find(parts.begin(), parts.end(), text) == parts.end()) {
            parts.push_back(text);
        }
    }
    const bool more = parts.size() > 3;
    parts.resize(std::min<std::size_t>(parts.size(), 3));
    return base::join(parts, ", ") + (more ? ", …" : "");
}

std::string device_text(const Json& constants) {
    const auto found = count_in(constants, "found");
    const auto rewritten = count_in(constants, "rewritten");
    if (rewritten > 0) {
        return fmt::format("device: {} named {} and name what the weights are on now ({})",
                           places(rewritten), joined(constants, "named"), methods_of(constants));
    }
    return found == 0 ? ""
                      : fmt::format(
                            "its code names {} in {} ({}): it runs there only; --device "
                            "makes it run on another device",
                            joined(constants, "named"), places(found), methods_of(constants));
}

std::string dtype_text(const Json& report, const Json& constants) {
    const auto dtype = shown_text(report, "dtype");
    if (dtype.empty()) {
        const auto found = count_in(constants, "found");
        return found == 0 ? ""
                          : fmt::format(
                                "its code names {} in {} ({}): with weights of another "
                                "dtype it would mix both; --dtype converts it",
                                joined(constants, "named"), places(found), methods_of(constants));
    }
    std::string text = fmt::format("{}: {} weights converted, {} of its code rewritten", dtype,
                                   count_in(constants, "weights_converted"),
                                   places(count_in(constants, "rewritten")));
    if (const auto inserted = count_in(constants, "inserted"); inserted > 0) {
        text += fmt::format(", {} of them by a cast that was added", inserted);
    }
    if (const auto methods = methods_of(constants); !methods.empty()) {
        text += " (" + methods + ")";
    }
    if (const auto kept = joined(constants, "kept_float32"); !kept.empty()) {
        text += "; read as float32 and kept: " + kept;
    }
    const auto conversion = report.find("conversion");
    if (conversion != report.end() && conversion->is_object()) {
        text += "; error " + error_text(number_of(*conversion, "max_error")) + " (allowed " +
                error_text(number_of(*conversion, "allowed_error")) + ")";
    }
    return text;
}

// The constants that tie the model to a device and a dtype, or no longer do.
std::string portability(const Json& report, std::size_t columns) {
    std::string text;
    const Json none = Json::object();
    const auto part = [&](const char* key) -> const Json& {
        const auto found = report.find(key);
        return found != report.end() && found->is_object() ? *found : none;
    };
    for (const auto& line :
         {device_text(part("device_constants")), dtype_text(report, part("dtype_constants"))}) {
        text += line.empty() ? "" : (columns == 0 ? line : base::wrap(line, columns, 0)) + "\n";
    }
    return text;
}

}  // namespace

std::string kernelize_table(const Json& report, bool each, std::size_t columns, bool color) {
    return sites_text(report, each, columns, color) + portability(report, columns) +
           whole_model(report) + frozen_model(report);
}

}  // namespace twinkle::cli
