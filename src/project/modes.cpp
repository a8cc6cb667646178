#include "project/modes.h"

#include <algorithm>

#include "base/text.h"

namespace twinkle::project {

std::optional<std::string> parse_layer_mode(std::string_view text) {
    if (text == "fallback") {
        return std::string(text);
    }
    std::string mode;
    bool compile = false;
    for (const std::string& part : base::split(text, '+')) {
        if (part == "compile" && !compile) {
            compile = true;
        } else if ((part == "inference" || part == "training" || part == "train") && mode.empty()) {
            mode = part == "inference" ? "inference" : "training";
        } else {
            return std::nullopt;
        }
    }
    return (mode.empty() ? "inference" : mode) + (compile ? "+compile" : "");
}

}  // namespace twinkle::project
