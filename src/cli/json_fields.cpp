#include "cli/json_fields.h"

#include "base/text.h"

namespace twinkle::cli {

std::string text_of(const base::Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string shown_text(const base::Json& object, const char* key) {
    return base::printable(text_of(object, key));
}

std::uint64_t count_in(const base::Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

bool is_true(const base::Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_boolean() && found->get<bool>();
}

const base::Json& list_of(const base::Json& object, const char* key) {
    static const base::Json none = base::Json::array();
    const auto found = object.find(key);
    return found != object.end() && found->is_array() ? *found : none;
}

const base::Json& object_of(const base::Json& object, const char* key) {
    static const base::Json none = base::Json::object();
    const auto found = object.find(key);
    return found != object.end() && found->is_object() ? *found : none;
}

std::string joined_texts(const base::Json& texts) {
    std::vector<std::string> parts;
    for (const auto& text : texts) {
        parts.push_back(text.is_string() ? base::printable(text.get_ref<const std::string&>())
                                         : "");
    }
    return base::join(parts, ", ");
}

base::Json text_or_null(const std::string& text) {
    return text.empty() ? base::Json() : base::Json(text);
}

}  // namespace twinkle::cli
