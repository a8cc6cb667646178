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

}  // namespace twinkle::cli
