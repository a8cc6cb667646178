#include "base/toml.h"

// toml++'s parser leaves some malformed input to its assertions. These must be errors, in release
// builds, too, where it would continue in a state that it assumes impossible.
namespace twinkle::base {
struct TomlAssertion {};
[[noreturn]] inline void refuse_toml() {
    throw TomlAssertion();
}
}  // namespace twinkle::base
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) \
    (static_cast<bool>(expression) ? void() : ::twinkle::base::refuse_toml())
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/toml_depth.h"

namespace twinkle::base {
namespace {

// The same limit as for JSON; the parser, and all code that walks the tree, recurse.
constexpr std::size_t most_levels = 64;

TextPosition position(const toml::source_region& source) {
    return {source.begin.line, source.begin.column};
}

Node convert(const toml::node& value);

Node convert_table(const toml::table& table) {
    Node node;
    node.kind = Node::Kind::table;
    for (const auto& [key, value] : table) {
        node.members.push_back({std::string(key.str()), position(key.source()), convert(value)});
    }
    // toml++ sorts keys; precedence follows the order of the document.
    std::stable_sort(
        node.members.begin(), node.members.end(), [](const Member& a, const Member& b) {
            return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
        });
    return node;
}

Node convert(const toml::node& value) {
    Node node;
    if (const auto* table = value.as_table()) {
        node = convert_table(*table);
    } else if (const auto* array = value.as_array()) {
        node.kind = Node::Kind::array;
        for (const toml::node& item : *array) {
            node.items.push_back(convert(item));
        }
    } else if (const auto* text = value.as_string()) {
        node.kind = Node::Kind::string;
        node.text = text->get();
    } else if (const auto* integer = value.as_integer()) {
        node.kind = Node::Kind::integer;
        node.integer = integer->get();
        node.number = static_cast<double>(node.integer);
    } else if (const auto* number = value.as_floating_point();
               number != nullptr && std::isfinite(number->get())) {
        node.kind = Node::Kind::number;
        node.number = number->get();
    } else if (const auto* boolean = value.as_boolean()) {
        node.kind = Node::Kind::boolean;
        node.boolean = boolean->get();
    } else {
        node.kind = Node::Kind::other;
    }
    node.at = position(value.source());
    return node;
}

}  // namespace

Node parse_toml_document(std::string_view text, std::string_view origin) {
    if (const auto at = too_deep_in_toml(text, most_levels)) {
        throw Error(ErrorCode::malformed,
                    {.what = "not valid TOML",
                     .where = located(origin, *at),
                     .why = "nested deeper than " + std::to_string(most_levels) + " levels",
                     .hint = ""});
    }
    try {
        return convert(toml::parse(text, origin));
    } catch (const toml::parse_error& error) {
        throw Error(ErrorCode::malformed, {.what = "not valid TOML",
                                           .where = located(origin, position(error.source())),
                                           .why = printable(error.description()),
                                           .hint = "look at that line: key = value, text in "
                                                   "quotes, every key and table once"});
    } catch (const TomlAssertion&) {
        throw Error(ErrorCode::malformed, {.what = "not valid TOML",
                                           .where = printable(origin),
                                           .why = "a key or value is malformed",
                                           .hint = "look for a line without a key or its \"=\""});
    }
}

std::string toml_string(std::string_view text) {
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
            result += "\\u00";
            result += digits[byte >> 4];
            result += digits[byte & 15];
        } else {
            result += c == '"' || c == '\\' ? "\\" : "";
            result += c;
        }
    }
    return result + '"';
}

std::string toml_key(const std::string& name) {
    const bool bare = !name.empty() && name.find_first_not_of(
                                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789_-") == std::string::npos;
    return bare ? name : toml_string(name);
}

}  // namespace twinkle::base
