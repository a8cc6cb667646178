#include "runtime/graph/class_name.h"

#include <algorithm>
#include <cctype>

namespace twinkle::runtime {

std::string unmangled(std::string_view qualified_name) {
    std::string kept;
    kept.reserve(qualified_name.size());
    while (!qualified_name.empty()) {
        const std::string_view part = qualified_name.substr(0, qualified_name.find('.'));
        qualified_name.remove_prefix(std::min(qualified_name.size(), part.size() + 1));
        const bool first = kept.empty() && part == "__torch__";
        if (!first && !part.starts_with("___torch_mangle_")) {
            kept.append(kept.empty() ? "" : ".").append(part);
        }
    }
    return kept;
}

std::string without_mangling(std::string_view text) {
    constexpr std::string_view root = "__torch__.";
    constexpr std::string_view mangling = "___torch_mangle_";
    const auto in_name = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    };
    std::string result;
    while (!text.empty()) {
        if (text.starts_with(root) && (result.empty() || !in_name(result.back()))) {
            text.remove_prefix(root.size());
            continue;
        }
        const auto end = text.starts_with(mangling)
                             ? text.find_first_not_of("0123456789", mangling.size())
                             : std::string_view::npos;
        if (end != std::string_view::npos && end > mangling.size() && text[end] == '.') {
            text.remove_prefix(end + 1);
            continue;
        }
        result += text.front();
        text.remove_prefix(1);
    }
    return result;
}

}  // namespace twinkle::runtime
