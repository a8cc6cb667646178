#include "twinkle/tuning_config.h"

#include <cmath>

#include "base/text.h"
#include "tuning/json_reading.h"
#include "twinkle/error.h"

namespace twinkle {

using base::Json;

std::string stable_json(std::string_view json) {
    return base::json_line(base::parse_json(json, "JSON"));
}

std::string to_json(const CfgFields& fields) {
    Json table = Json::object();
    for (const auto& [name, value] : fields) {
        if (const double* number = std::get_if<double>(&value); number && !std::isfinite(*number)) {
            detail::wrong_field(name, "a number must be finite");
        }
        const auto* text = std::get_if<std::string>(&value);
        if (!base::is_utf8(name) || (text != nullptr && !base::is_utf8(*text))) {
            detail::wrong_field(name, "a text must be UTF-8");
        }
        std::visit([&, &field = name](const auto& plain) { table[field] = plain; }, value);
    }
    return base::json_line(table);
}

CfgFields fields_from_json(std::string_view json) {
    constexpr std::string_view origin = "configuration";
    const base::Node root = base::parse_json_document(json, origin, tuning::entry_limits);
    CfgFields fields;
    const Json table = tuning::flat_table(root, origin, "a configuration");
    for (const auto& [name, value] : table.items()) {
        fields[name] = value.is_boolean()          ? CfgValue(value.get<bool>())
                       : value.is_number_integer() ? CfgValue(value.get<std::int64_t>())
                       : value.is_number()         ? CfgValue(value.get<double>())
                                                   : CfgValue(value.get<std::string>());
    }
    return fields;
}

void detail::wrong_field(const std::string& name, const char* why) {
    throw Error(ErrorCode::malformed, {.what = "a configuration is not what its operation takes",
                                       .where = base::printable(name),
                                       .why = why,
                                       .hint = ""});
}

}  // namespace twinkle
