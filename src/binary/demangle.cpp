#include "binary/demangle.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace twinkle::binary {
namespace {

constexpr std::size_t longest_mangled = 8192;
constexpr double longest_text = 64e6;

// A back reference repeats an earlier part. Three references to each preceding part make the text
// grow the fastest.
bool may_explode(std::string_view name) {
    double worst = static_cast<double>(name.size());
    std::size_t references = 0;
    for (std::size_t i = 2; i + 1 < name.size(); ++i) {
        const char next = name[i + 1];
        const bool digit = next == '_' || (next >= '0' && next <= '9');
        const bool letter = next >= 'A' && next <= 'Z';
        references += (name[i] == 'S' && (digit || letter)) || (name[i] == 'T' && digit) ? 1 : 0;
    }
    for (std::size_t i = 0; i < references && worst < longest_text; i += 3) {
        worst *= 3;
    }
    return worst >= longest_text;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

}  // namespace

std::string demangle(std::string_view name) {
    std::string mangled(name);
    if (!name.starts_with("_Z") || name.size() > longest_mangled || may_explode(name)) {
        return mangled;
    }
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
    return status == 0 && text ? std::string(text.get()) : mangled;
}

std::string_view outer_namespace(std::string_view mangled) {
    if (!mangled.starts_with("_Z")) {
        return {};
    }
    mangled.remove_prefix(2);
    for (const std::string_view special : {"TV", "TT", "TI", "TS", "GV", "GR", "L"}) {
        if (mangled.starts_with(special)) {
            mangled.remove_prefix(special.size());
            break;
        }
    }
    if (!mangled.starts_with('N')) {
        return {};
    }
    mangled.remove_prefix(1);
    while (!mangled.empty() &&
           std::string_view("rVKRO").find(mangled.front()) != std::string_view::npos) {
        mangled.remove_prefix(1);
    }
    std::size_t length = 0;
    while (!mangled.empty() && is_digit(mangled.front()) && length < longest_mangled) {
        length = length * 10 + static_cast<std::size_t>(mangled.front() - '0');
        mangled.remove_prefix(1);
    }
    return length == 0 || length > mangled.size() ? std::string_view() : mangled.substr(0, length);
}

}  // namespace twinkle::binary
