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

std::optional<std::string> parse_mode(std::string_view text) {
    return text == "fallback" ? std::nullopt : parse_layer_mode(text);
}

std::vector<std::string> mode_names() {
    return {"inference", "training", "inference+compile", "training+compile"};
}

bool wants_training(std::string_view mode) {
    return mode.starts_with("training");
}

bool wants_compile(std::string_view mode) {
    return mode.ends_with("+compile");
}

const char* excluding_flag(std::string_view bound, std::string_view asked, bool has_backward,
                           bool can_torch_compile) {
    const auto wanted = [&](const auto& is) { return is(bound) && (asked.empty() || is(asked)); };
    return !has_backward && wanted(wants_training)       ? "has_backward"
           : !can_torch_compile && wanted(wants_compile) ? "can_torch_compile"
                                                         : nullptr;
}

std::string file_of_place(const std::string& where) {
    return where.substr(where.rfind('/') + 1);
}

}  // namespace twinkle::project
