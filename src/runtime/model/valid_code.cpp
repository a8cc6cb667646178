#include "runtime/model/valid_code.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace twinkle::runtime {

namespace {

constexpr std::size_t deepest_nesting = 1000;
constexpr std::size_t longest_chain = 1000;
constexpr std::size_t deepest_indent = 400;

bool in_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

class Scan {
public:
    explicit Scan(std::string_view code) : code_(code) {}

    std::optional<std::string> run() {
        while (at_ < code_.size()) {
            step();
            if (chains_.size() > deepest_nesting + 1) {
                return "its code is nested more deeply than any sane one";
            }
            if (chains_.back() > longest_chain) {
                return "an expression of its code is longer than any sane one";
            }
            if (indent_ > deepest_indent) {
                return "its code is indented further than any sane one";
            }
        }
        return std::nullopt;
    }

private:
    void step() {
        const char c = code_[at_];
        if (c == '"' || c == '\'') {
            return skip_string(c);
        }
        if (c == '#') {
            at_ = std::min(code_.find('\n', at_), code_.size());
        } else if (in_word(c)) {
            skip_word();
        } else if (c == '\n') {
            new_line();
        } else {
            punctuation(c);
            ++at_;
        }
    }

    // "1.5e-3" is one word, "a.b" two.
    void skip_word() {
        const auto begin = at_;
        const bool digits = std::isdigit(static_cast<unsigned char>(code_[at_])) != 0;
        while (at_ < code_.size() && (in_word(code_[at_]) || (digits && code_[at_] == '.'))) {
            ++at_;
        }
        const auto word = code_.substr(begin, at_ - begin);
        if (word == "not" || word == "and" || word == "or" || word == "if" || word == "else" ||
            word == "in" || word == "is") {
            ++chains_.back();
        }
    }

    void skip_string(char quote) {
        for (++at_; at_ < code_.size() && code_[at_] != quote && code_[at_] != '\n'; ++at_) {
            at_ += code_[at_] == '\\' ? 1 : 0;
        }
        at_ = std::min(at_ + 1, code_.size());
    }

    void new_line() {
        ++at_;
        const auto text = std::min(code_.find_first_not_of(" \t", at_), code_.size());
        if (chains_.size() == 1) {
            chains_.back() = 0;
            indent_ = text - at_;
        }
        at_ = text;
    }

    void punctuation(char c) {
        if (c == '(' || c == '[' || c == '{') {
            ++chains_.back();  // a call of what a call returned
            chains_.push_back(0);
        } else if (c == ')' || c == ']' || c == '}') {
            if (chains_.size() > 1) {
                chains_.pop_back();
            }
        } else if (c == ',' || c == ';') {
            chains_.back() = 0;
        } else if (c != ' ' && c != '\t' && c != '\r' && c != '\\') {
            ++chains_.back();
        }
    }

    std::string_view code_;
    std::size_t at_ = 0;
    std::size_t indent_ = 0;
    std::vector<std::size_t> chains_{0};  // operators since the last comma, by bracket
};

}  // namespace

std::optional<std::string> invalid_code(std::string_view code) {
    return Scan(code).run();
}

}  // namespace twinkle::runtime
