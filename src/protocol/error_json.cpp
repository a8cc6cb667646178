#include "protocol/error_json.h"

#include "protocol/bounded_text.h"

#include <algorithm>
#include <string>

namespace twinkle::protocol {

base::Json to_json(const Error& error) {
    const ErrorDetails& details = error.details();
    return {{"code", error_code_name(error.code())},
            {"what", details.what},
            {"where", details.where},
            {"why", details.why},
            {"hint", details.hint}};
}

Error error_of(const base::Json& json, std::span<const ErrorCode> believed, ErrorCode otherwise) {
    const std::string name = bounded_text(json, "code");
    const auto code = std::find_if(believed.begin(), believed.end(),
                                   [&](ErrorCode one) { return error_code_name(one) == name; });
    return {code != believed.end() ? *code : otherwise,
            ErrorDetails{.what = bounded_text(json, "what"),
                         .where = bounded_text(json, "where"),
                         .why = bounded_text(json, "why"),
                         .hint = bounded_text(json, "hint")}};
}

}  // namespace twinkle::protocol
