#include "runtime/trial/child_error.h"

#include "base/text.h"

namespace twinkle::runtime {

namespace {

constexpr std::size_t longest_text = 4096;

std::string text(const base::Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string()
               ? base::printable(found->get_ref<const std::string&>().substr(0, longest_text))
               : "";
}

ErrorCode code_named(const std::string& name) {
    for (const auto code :
         {ErrorCode::failed, ErrorCode::malformed, ErrorCode::not_found, ErrorCode::verification}) {
        if (error_code_name(code) == name) {
            return code;
        }
    }
    return ErrorCode::refused;
}

}  // namespace

base::Json to_json(const Error& error) {
    const ErrorDetails& details = error.details();
    return {{"code", error_code_name(error.code())},
            {"what", details.what},
            {"where", details.where},
            {"why", details.why},
            {"hint", details.hint}};
}

Error error_of(const base::Json& json) {
    return {code_named(text(json, "code")), ErrorDetails{.what = text(json, "what"),
                                                         .where = text(json, "where"),
                                                         .why = text(json, "why"),
                                                         .hint = text(json, "hint")}};
}

}  // namespace twinkle::runtime
