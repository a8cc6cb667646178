#pragma once
// A text that another process has written: a name or a sentence that is shown, not its flood.

#include "base/json.h"

#include <string>

namespace twinkle::protocol {

// At most 4,096 bytes; "" where it is no text.
inline std::string bounded_text(const base::Json& json, const char* key) {
    constexpr std::size_t longest = 4096;
    const auto found = json.find(key);
    return found != json.end() && found->is_string()
               ? found->get_ref<const std::string&>().substr(0, longest)
               : "";
}

}  // namespace twinkle::protocol
