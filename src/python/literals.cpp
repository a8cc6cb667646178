#include "python/literals.h"

#include "python/source.h"
#include "python/unicode.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>

namespace twinkle::python {
namespace {

// What overflows is infinite and what underflows is zero, as in Python.
double to_double(std::string_view text) {
    double value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec != std::errc::result_out_of_range) {
        return value;
    }
    const auto e = std::min(text.find('e'), text.size());
    const auto point = static_cast<long>(std::min(text.find('.'), e));
    const auto first = static_cast<long>(text.find_first_not_of("0."));
    const long exponent =
        e == text.size() ? 0 : std::strtol(std::string(text.substr(e + 1)).c_str(), nullptr, 10);
    return exponent > first - point ? std::numeric_limits<double>::infinity() : 0.0;
}

ConstantValue integer(const std::string& text) {
    int base = 10;
    std::string_view digits = text;
    if (text.size() > 2 && text[0] == '0' && std::isalpha(static_cast<unsigned char>(text[1]))) {
        base = text[1] == 'x' ? 16 : text[1] == 'o' ? 8 : 2;
        digits.remove_prefix(2);
    }
    std::int64_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (result.ec == std::errc::result_out_of_range) {
        return BigInteger{text};
    }
    return value;
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const int lower = std::tolower(static_cast<unsigned char>(c));
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// One decoding of a body; `i` moves over it.
class Decoder {
public:
    Decoder(std::string_view body, DecodeMode mode, std::string& out, bool& has_named_escape)
        : body_(body), mode_(mode), out_(out), has_named_escape_(has_named_escape) {}

    std::optional<DecodeError> run() {
        while (i_ < body_.size() && !error_) {
            const char c = body_[i_];
            if (c == '\\' && !mode_.raw) {
                escape();
            } else if (const auto size = line_end_size(body_, i_)) {
                out_ += '\n';
                i_ += size;
            } else {
                plain(c);
            }
        }
        return error_;
    }

private:
    void plain(char c) {
        if (mode_.bytes && static_cast<unsigned char>(c) >= 0x80) {
            error_ = DecodeError{i_, "bytes can only contain ASCII literal characters"};
            return;
        }
        out_ += c;
        i_ += mode_.double_braces && (c == '{' || c == '}') ? 2 : 1;
    }

    void escape() {
        const std::size_t begin = i_;
        if (const auto size = line_end_size(body_, i_ + 1)) {
            i_ += 1 + size;
            return;
        }
        const char c = i_ + 1 < body_.size() ? body_[i_ + 1] : '\0';
        static constexpr std::string_view letters = "\\'\"abfnrtv";
        static constexpr std::string_view values = "\\'\"\a\b\f\n\r\t\v";
        i_ += 2;
        if (const auto simple = letters.find(c); simple != std::string_view::npos && c != '\0') {
            out_ += values[simple];
        } else if (c >= '0' && c <= '7') {
            octal();
        } else if (c == 'x') {
            hexadecimal(begin, 2);
        } else if (c == 'u' && !mode_.bytes) {
            hexadecimal(begin, 4);
        } else if (c == 'U' && !mode_.bytes) {
            hexadecimal(begin, 8);
        } else if (c == 'N' && !mode_.bytes) {
            named(begin);
        } else {
            out_ += '\\';  // an unknown escape stands for itself
            i_ = begin + 1;
        }
    }

    void append(std::uint32_t code) {
        if (mode_.bytes) {
            out_ += static_cast<char>(code & 0xFF);
        } else {
            append_utf8(out_, code);
        }
    }

    void octal() {
        std::uint32_t code = 0;
        --i_;
        for (int k = 0; k < 3 && i_ < body_.size() && body_[i_] >= '0' && body_[i_] <= '7'; ++k) {
            code = code * 8 + static_cast<std::uint32_t>(body_[i_++] - '0');
        }
        append(code);
    }

    void hexadecimal(std::size_t begin, int digits) {
        std::uint32_t code = 0;
        for (int k = 0; k < digits; ++k, ++i_) {
            const int digit = i_ < body_.size() ? hex_digit(body_[i_]) : -1;
            if (digit < 0) {
                error_ = DecodeError{begin, std::string("truncated \\") + body_[begin + 1] +
                                                " escape: " + std::to_string(digits) +
                                                " hexadecimal digits expected"};
                return;
            }
            code = code << 4 | static_cast<std::uint32_t>(digit);
        }
        if (code > 0x10FFFF) {
            error_ = DecodeError{begin, "illegal Unicode character"};
            return;
        }
        append(code);
    }

    void named(std::size_t begin) {
        const auto end = body_.find('}', i_);
        if (i_ >= body_.size() || body_[i_] != '{' || end == std::string_view::npos ||
            end == i_ + 1) {
            error_ = DecodeError{begin, "malformed \\N character escape"};
            return;
        }
        out_.append(body_, begin, end + 1 - begin);
        has_named_escape_ = true;
        i_ = end + 1;
    }

    std::string_view body_;
    DecodeMode mode_;
    std::string& out_;
    bool& has_named_escape_;
    std::size_t i_ = 0;
    std::optional<DecodeError> error_;
};

}  // namespace

ConstantValue number_value(std::string_view token) {
    std::string text;
    for (const char c : token) {
        if (c != '_') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    const bool prefixed =
        text.size() > 1 && text[0] == '0' && (text[1] == 'x' || text[1] == 'o' || text[1] == 'b');
    if (!prefixed && text.back() == 'j') {
        text.pop_back();
        return Imaginary{to_double(text)};
    }
    if (!prefixed && text.find_first_of(".e") != std::string::npos) {
        return to_double(text);
    }
    return integer(text);
}

StringToken take_apart(std::string_view token) {
    StringToken out;
    std::size_t i = 0;
    for (; token[i] != '"' && token[i] != '\''; ++i) {
        const int c = std::tolower(static_cast<unsigned char>(token[i]));
        out.raw = out.raw || c == 'r';
        out.bytes = out.bytes || c == 'b';
        out.u_prefix = out.u_prefix || token[i] == 'u';
    }
    const bool triple =
        token.size() >= i + 6 && token[i + 1] == token[i] && token[i + 2] == token[i];
    const std::size_t quotes = triple ? 3 : 1;
    out.body_offset = i + quotes;
    out.body = token.substr(out.body_offset, token.size() - out.body_offset - quotes);
    return out;
}

std::optional<DecodeError> decode_string(std::string_view body, DecodeMode mode, std::string& out,
                                         bool& has_named_escape) {
    return Decoder(body, mode, out, has_named_escape).run();
}

}  // namespace twinkle::python
