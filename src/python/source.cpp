#include "python/source.h"

#include "python/parser.h"
#include "python/unicode.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace twinkle::python {
namespace {

bool is_cookie_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
}

// The encoding that a comment line declares (PEP 263); empty if it declares none.
std::string declared_encoding(std::string_view line) {
    const auto text = line.find_first_not_of(" \t\f");
    if (text == std::string_view::npos || line[text] != '#') {
        return {};
    }
    for (auto at = line.find("coding", text); at != std::string_view::npos;
         at = line.find("coding", at + 1)) {
        auto i = at + 6;
        if (i >= line.size() || (line[i] != ':' && line[i] != '=')) {
            continue;
        }
        ++i;
        while (i < line.size() && (line[i] == ' ' || line[i] == '\t')) ++i;
        auto end = i;
        while (end < line.size() && is_cookie_char(line[end])) ++end;
        if (end > i) {
            return std::string(line.substr(i, end - i));
        }
    }
    return {};
}

bool is_blank_or_comment(std::string_view line) {
    const auto text = line.find_first_not_of(" \t\f");
    return text == std::string_view::npos || line[text] == '#';
}

bool is_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// Encodings of which ASCII is a part: a file that is all ASCII reads the same in each of them.
bool extends_ascii(std::string_view encoding) {
    static constexpr std::array<std::string_view, 8> prefixes{
        "ascii", "us-ascii", "latin", "iso-8859", "iso8859", "cp125", "windows-125", "koi8"};
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](std::string_view prefix) { return encoding.starts_with(prefix); });
}

std::optional<SourceProblem> check_encoding(std::string_view source) {
    std::size_t begin = byte_order_mark_size(source);
    for (int line = 0; line < 2; ++line) {
        const auto end = std::min(source.find_first_of("\r\n", begin), source.size());
        const auto text = source.substr(begin, end - begin);
        auto encoding = declared_encoding(text);
        if (!encoding.empty()) {
            const auto declared = encoding;
            std::transform(encoding.begin(), encoding.end(), encoding.begin(), [](char c) {
                return c == '_' ? '-' : static_cast<char>(std::tolower(c));
            });
            if (byte_order_mark_size(source) > 0 && !encoding.starts_with("utf-8")) {
                return SourceProblem{begin,
                                     "a UTF-8 byte order mark, but the encoding " + declared};
            }
            const bool utf8 = encoding == "utf-8" || encoding == "utf8" ||
                              encoding.starts_with("utf-8-") || encoding == "u8";
            if (utf8 || (extends_ascii(encoding) && is_ascii(source))) {
                return std::nullopt;
            }
            return SourceProblem{begin, "the encoding is " + declared + "; only utf-8 is read"};
        }
        if (!is_blank_or_comment(text)) {
            break;
        }
        begin = end + line_end_size(source, end);
    }
    return std::nullopt;
}

}  // namespace

std::size_t byte_order_mark_size(std::string_view source) {
    return source.starts_with("\xEF\xBB\xBF") ? 3 : 0;
}

std::optional<SourceProblem> check_source(std::string_view source) {
    if (source.size() > kMaxSourceSize) {
        return SourceProblem{0, "source of " + std::to_string(source.size()) + " bytes; at most " +
                                    std::to_string(kMaxSourceSize) + " are read"};
    }
    if (const auto nul = source.find('\0'); nul != std::string_view::npos) {
        return SourceProblem{nul, "source code cannot contain null bytes"};
    }
    if (auto problem = check_encoding(source)) {
        return problem;
    }
    if (const auto bad = invalid_utf8(source)) {
        return SourceProblem{*bad, "bytes that are not UTF-8"};
    }
    return std::nullopt;
}

}  // namespace twinkle::python
