#include "protocol/error_json.h"

#include <algorithm>
#include <string>

namespace twinkle::protocol {

namespace {

constexpr std::size_t longest_text = 4096;

std::string text(const base::Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string()
               ? found->get_ref<const std::string&>().substr(0, longest_text)
               : "";
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

Error error_of(const base::Json& json, std::span<const ErrorCode> believed, ErrorCode otherwise) {
    const std::string name = text(json, "code");
    const auto code = std::find_if(believed.begin(), believed.end(),
                                   [&](ErrorCode one) { return error_code_name(one) == name; });
    return {code != believed.end() ? *code : otherwise, ErrorDetails{.what = text(json, "what"),
                                                                     .where = text(json, "where"),
                                                                     .why = text(json, "why"),
                                                                     .hint = text(json, "hint")}};
}

}  // namespace twinkle::protocol
