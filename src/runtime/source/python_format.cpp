#include "runtime/source/python_format.h"

#include <array>
#include <charconv>
#include <cmath>

namespace twinkle::runtime {

namespace {

// [[fill]align][sign][0][width][,][.precision][type]
struct Specification {
    char fill = ' ';
    char align = 0;
    char sign = '-';
    bool zero = false;
    bool commas = false;
    std::size_t width = 0;
    std::optional<int> precision;
    char type = 0;
};

constexpr int largest_number = 200;  // characters; a specification may ask for any number

bool is_align(char c) {
    return c == '<' || c == '>' || c == '^' || c == '=';
}

// A number at `at`, which moves behind it. None: none there, or too large.
std::optional<int> number(const std::string& text, std::size_t& at) {
    int value = 0;
    const std::size_t first = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
        value = value * 10 + (text[at++] - '0');
        if (value > largest_number) {
            return std::nullopt;
        }
    }
    return at > first ? std::optional(value) : std::nullopt;
}

std::optional<Specification> parse(const std::string& text) {
    Specification result;
    std::size_t at = 0;
    const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
    if (text.size() > 1 && is_align(text[1])) {
        result.fill = text[0];
        result.align = text[1];
        at = 2;
    } else if (is_align(peek())) {
        result.align = text[at++];
    }
    if (static_cast<unsigned char>(result.fill) >= 0x80) {
        return std::nullopt;  // a part of a character
    }
    if (peek() == '+' || peek() == '-' || peek() == ' ') {
        result.sign = text[at++];
    }
    if (peek() == '0') {
        result.zero = true;
        ++at;
    }
    if (peek() >= '0' && peek() <= '9') {
        const auto width = number(text, at);
        if (!width) {
            return std::nullopt;
        }
        result.width = static_cast<std::size_t>(*width);
    }
    if (peek() == ',') {
        result.commas = true;
        ++at;
    }
    if (peek() == '.') {
        ++at;
        result.precision = number(text, at);
        if (!result.precision) {
            return std::nullopt;
        }
    }
    if (at < text.size()) {
        result.type = text[at++];
    }
    // Zeros behind an alignment are a fill, in newer Pythons.
    const bool known = at == text.size() && !(result.zero && result.align != 0);
    return known ? std::optional(result) : std::nullopt;
}

std::string repeated(char c, std::size_t count) {
    return std::string(count, c);
}

// Characters, not bytes.
std::size_t length(const std::string& text) {
    std::size_t count = 0;
    for (const char c : text) {
        count += (static_cast<unsigned char>(c) & 0xc0u) == 0x80u ? 0 : 1;
    }
    return count;
}

std::string padded(const std::string& sign, const std::string& body, const Specification& spec,
                   char standard) {
    const std::size_t size = length(sign) + length(body);
    const std::size_t missing = spec.width > size ? spec.width - size : 0;
    const char align = spec.align != 0 ? spec.align : spec.zero ? '=' : standard;
    const char fill = spec.align == 0 && spec.zero ? '0' : spec.fill;
    switch (align) {
        case '<': return sign + body + repeated(fill, missing);
        case '^':
            return repeated(fill, missing / 2) + sign + body +
                   repeated(fill, missing - missing / 2);
        case '=': return sign + repeated(fill, missing) + body;
        default: return repeated(fill, missing) + sign + body;
    }
}

std::string sign_of(bool negative, const Specification& spec) {
    return negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
}

// 1234567.5 → 1,234,567.5
std::string with_commas(const std::string& digits) {
    const std::size_t whole = digits.find_first_not_of("0123456789");
    std::string result = whole == std::string::npos ? "" : digits.substr(whole);
    std::size_t end = whole == std::string::npos ? digits.size() : whole;
    while (end > 3) {
        result = "," + digits.substr(end - 3, 3) + result;
        end -= 3;
    }
    return digits.substr(0, end) + result;
}

std::optional<std::string> of_text(const std::string& text, const Specification& spec) {
    if ((spec.type != 0 && spec.type != 's') || spec.sign != '-' || spec.commas ||
        spec.align == '=' || spec.zero) {
        return std::nullopt;
    }
    std::string part = text;
    if (spec.precision) {
        std::size_t at = 0;
        for (int left = *spec.precision; at < part.size(); ++at) {
            const bool begins = (static_cast<unsigned char>(part[at]) & 0xc0u) != 0x80u;
            if (begins && left-- == 0) {
                break;
            }
        }
        part.resize(at);
    }
    return padded("", part, spec, '<');
}

std::optional<std::string> of_integer(std::int64_t value, const Specification& spec) {
    // Zeros would be grouped too.
    if (spec.precision || (spec.commas && spec.zero)) {
        return std::nullopt;
    }
    const int base = spec.type == 'x' || spec.type == 'X' ? 16
                     : spec.type == 'o'                   ? 8
                     : spec.type == 'b'                   ? 2
                     : spec.type == 0 || spec.type == 'd' ? 10
                                                          : 0;
    if (base == 0 || (spec.commas && base != 10)) {
        return std::nullopt;
    }
    std::array<char, 72> digits{};
    const std::uint64_t magnitude =
        value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), magnitude, base).ptr;
    std::string body(digits.data(), end);
    if (spec.type == 'X') {
        for (char& c : body) {
            c = c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
        }
    }
    return padded(sign_of(value < 0, spec), spec.commas ? with_commas(body) : body, spec, '>');
}

// repr(): the shortest digits that are this number, with an exponent as Python has it.
std::string shortest(double value) {
    std::array<char, 64> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific);
    const std::string scientific(text.data(), end.ptr);
    const std::size_t e = scientific.find('e');
    const int exponent = std::stoi(scientific.substr(e + 1));
    if (exponent < -4 || exponent >= 16) {
        return scientific;
    }
    std::string digits = scientific.substr(0, e);
    if (digits.size() > 1) {
        digits.erase(1, 1);  // the point
    }
    const int size = static_cast<int>(digits.size());
    if (exponent < 0) {
        return "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
    }
    if (size <= exponent + 1) {
        return digits + std::string(static_cast<std::size_t>(exponent + 1 - size), '0') + ".0";
    }
    return digits.insert(static_cast<std::size_t>(exponent) + 1, ".");
}

// Writes the digits that are asked for, whatever the locale.
std::string with_digits(double magnitude, const Specification& spec) {
    std::array<char, 600> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), magnitude,
                      spec.type == 'e' ? std::chars_format::scientific : std::chars_format::fixed,
                      spec.precision.value_or(6))
            .ptr;
    return {text.data(), end};
}

std::optional<std::string> of_float(double value, const Specification& spec) {
    const bool known = (spec.type == 0 && !spec.precision) || spec.type == 'f' ||
                       spec.type == 'e' || spec.type == '%';
    if (!known || (spec.commas && spec.zero)) {
        return std::nullopt;
    }
    const std::string sign = sign_of(std::signbit(value) && !std::isnan(value), spec);
    const double magnitude = std::abs(spec.type == '%' ? value * 100 : value);
    std::string body = std::isnan(value)       ? "nan"
                       : std::isinf(magnitude) ? "inf"
                       : spec.type == 0        ? shortest(magnitude)
                                               : with_digits(magnitude, spec);
    body += spec.type == '%' ? "%" : "";
    return padded(sign, spec.commas ? with_commas(body) : body, spec, '>');
}

}  // namespace

std::optional<std::string> python_text(const c10::IValue& value) {
    if (value.isNone()) {
        return "None";
    }
    if (value.isString()) {
        return value.toStringRef();
    }
    if (value.isBool()) {
        return value.toBool() ? "True" : "False";
    }
    return python_format(value, "");
}

std::optional<std::string> python_format(const c10::IValue& value,
                                         const std::string& specification) {
    const auto spec = parse(specification);
    if (!spec) {
        return std::nullopt;
    }
    if (value.isString()) {
        return of_text(value.toStringRef(), *spec);
    }
    if (value.isBool()) {
        return specification.empty() ? python_text(value)
                                     : of_integer(value.toBool() ? 1 : 0, *spec);
    }
    if (value.isInt()) {
        return of_integer(value.toInt(), *spec);
    }
    return value.isDouble() ? of_float(value.toDouble(), *spec) : std::nullopt;
}

}  // namespace twinkle::runtime
