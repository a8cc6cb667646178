#include "kernel/schema.h"

#include <algorithm>
#include <array>
#include <utility>

namespace twinkle::kernel {
namespace {

constexpr std::array<std::string_view, 22> base_types{
    "Any",          "Device",   "DeviceIndex", "Dimname",    "Generator", "Layout",
    "MemoryFormat", "QScheme",  "Scalar",      "ScalarType", "Storage",   "Stream",
    "SymBool",      "SymFloat", "SymInt",      "Tensor",     "bool",      "complex",
    "float",        "int",      "number",      "str"};

bool is_word_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Recognizes; every method returns false as soon as the text cannot be a schema.
class SchemaParser {
public:
    explicit SchemaParser(std::string_view text) : text_(text) {}

    std::optional<OperatorSchema> parse() {
        OperatorSchema schema;
        if (!word(schema.name)) {
            return std::nullopt;
        }
        std::size_t start = 0;
        if (take("::")) {
            schema.op_namespace = std::exchange(schema.name, "");
            start = at_;
            if (!word(schema.name)) {
                return std::nullopt;
            }
        }
        std::string overload;
        if (take(".")) {
            if (!word(overload)) {
                return std::nullopt;
            }
            schema.name += "." + overload;
        }
        if (!arguments() || !arrow() || !returns() || at_ != text_.size()) {
            return std::nullopt;
        }
        schema.text = text_.substr(start);
        schema.mutates = std::move(mutates_);
        schema.least_arguments = least_;
        schema.most_arguments = most_;
        return schema;
    }

private:
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void spaces() {
        while (peek() == ' ' || peek() == '\n' || peek() == '\t') {
            ++at_;
        }
    }
    bool take(std::string_view token) {
        if (!text_.substr(at_).starts_with(token)) {
            return false;
        }
        at_ += token.size();
        return true;
    }
    // Skips spaces first.
    bool take_next(std::string_view token) {
        spaces();
        return take(token);
    }
    bool word(std::string& result) {
        const std::size_t start = at_;
        if (!is_word_start(peek())) {
            return false;
        }
        while (is_word(peek())) {
            ++at_;
        }
        result = text_.substr(start, at_ - start);
        return true;
    }
    bool word_next() {
        std::string ignored;
        spaces();
        return word(ignored);
    }
    bool arrow() { return take_next("->") && (spaces(), true); }

    bool arguments() {
        if (!take("(")) {
            return false;
        }
        if (take_next(")")) {
            return true;
        }
        bool keyword_only = false;
        do {
            spaces();
            if (take("...")) {
                most_ = std::string_view::npos;
                return take_next(")");
            }
            if (take("*")) {
                if (std::exchange(keyword_only, true)) {
                    return false;
                }
                continue;
            }
            const std::size_t start = at_;
            if (!type(0)) {
                return false;
            }
            const bool written = text_.substr(start, at_ - start).find('!') != std::string::npos;
            std::string name;
            spaces();
            if (!word(name)) {
                return false;
            }
            spaces();
            least_ += peek() == '=' ? 0 : 1;
            ++most_;
            if (!default_value()) {
                return false;
            }
            if (written) {
                mutates_.push_back(std::move(name));
            }
        } while (take_next(","));
        return take_next(")");
    }

    bool default_value() { return !take_next("=") || value(0); }

    bool value(int depth) {
        spaces();
        if (depth > 8) {
            return false;
        }
        if (peek() == '"' || peek() == '\'') {
            const char quote = text_[at_++];
            while (peek() != quote) {
                at_ += peek() == '\\' ? 2 : 1;
                if (at_ >= text_.size()) {
                    return false;
                }
            }
            ++at_;
            return true;
        }
        if (take("[")) {
            return take_next("]") || (values(depth) && take_next("]"));
        }
        const std::size_t start = at_;
        while (is_word(peek()) || peek() == '.' || peek() == '-' || peek() == '+') {
            ++at_;
        }
        return at_ > start;
    }
    bool values(int depth) {
        do {
            if (!value(depth + 1)) {
                return false;
            }
        } while (take_next(","));
        return true;
    }

    bool type(int depth) {
        spaces();
        if (depth > 8 || !base_type(depth)) {
            return false;
        }
        while (true) {
            if (take("?") || take("!")) {
                continue;
            }
            if (take("[")) {
                while (is_digit(peek())) {
                    ++at_;
                }
                if (!take("]")) {
                    return false;
                }
            } else if (peek() == '(') {
                if (!alias()) {
                    return false;
                }
            } else {
                return true;
            }
        }
    }

    bool base_type(int depth) {
        if (take("(")) {  // a tuple
            do {
                if (!type(depth + 1)) {
                    return false;
                }
            } while (take_next(","));
            return take_next(")");
        }
        std::string name;
        if (!word(name)) {
            return false;
        }
        if (name == "Dict") {
            return take("(") && type(depth + 1) && take_next(",") && type(depth + 1) &&
                   take_next(")");
        }
        if (name == "Future" || name == "Await" || name == "RRef") {
            return take("(") && type(depth + 1) && take_next(")");
        }
        if (name == "__torch__") {  // a class that the library registers
            while (take(".")) {
                if (!word(name)) {
                    return false;
                }
            }
            return true;
        }
        return std::find(base_types.begin(), base_types.end(), name) != base_types.end();
    }

    // "(a!)", "(a|b -> c)", "(a -> *)"
    bool alias() {
        if (!take("(") || !alias_set()) {
            return false;
        }
        take("!");
        if (take_next("->")) {
            spaces();
            if (!alias_set()) {
                return false;
            }
        }
        return take_next(")");
    }
    bool alias_set() {
        if (take("*")) {
            return true;
        }
        std::string name;
        do {
            if (!word(name)) {
                return false;
            }
        } while (take("|"));
        return true;
    }

    bool returns() {
        if (take("...")) {
            return true;
        }
        if (!take("(")) {
            return one_return();
        }
        if (take_next(")")) {
            return true;
        }
        do {
            if (!one_return()) {
                return false;
            }
        } while (take_next(","));
        return take_next(")");
    }
    bool one_return() {
        if (!type(0)) {
            return false;
        }
        const std::size_t before = at_;
        if (!word_next()) {
            at_ = before;
        }
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::vector<std::string> mutates_;
    std::size_t least_ = 0, most_ = 0;  // arguments of a call
};

}  // namespace

bool is_word(char c) {
    return is_word_start(c) || is_digit(c);
}

std::optional<OperatorSchema> parse_schema(std::string_view text) {
    return text.size() > longest_schema ? std::nullopt : SchemaParser(text).parse();
}

}  // namespace twinkle::kernel
