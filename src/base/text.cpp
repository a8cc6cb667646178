#include "base/text.h"

#include <algorithm>
#include <numeric>

namespace twinkle::base {
namespace {

// Edit distance that counts a swap of neighbours as one edit (the commonest typing error).
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
    std::iota(last.begin(), last.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        now[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            now[j] = std::min(
                {last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                now[j] = std::min(now[j], before[j - 2] + 1);
            }
        }
        before.swap(last);
        last.swap(now);
    }
    return last[b.size()];
}

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) {
        if (c >= 'A' && c <= 'Z') {
            c = static_cast<char>(c - 'A' + 'a');
        }
    }
    return result;
}

// Length of the well-formed UTF-8 sequence at the start of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xc2 ? 0
                               : first < 0xe0 ? 2
                               : first < 0xf0 ? 3
                               : first < 0xf5 ? 4
                                              : 0;
    if (length > text.size()) {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) {
            return 0;
        }
    }
    const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    const bool surrogate = first == 0xed && byte(1) >= 0xa0;
    const bool too_large = first == 0xf4 && byte(1) >= 0x90;
    return overlong || surrogate || too_large ? 0 : length;
}

// Characters that control a terminal or reorder the text around them.
bool is_control(std::string_view character) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
    switch (character.size()) {
        case 1: return byte(0) < 0x20 || byte(0) == 0x7f;
        case 2: return byte(0) == 0xc2 && byte(1) < 0xa0;
        case 3:
            return byte(0) == 0xe2 && ((byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae) ||
                                       (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9));
        default: return false;
    }
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0;
    std::size_t star = std::string_view::npos, resume = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates) {
    const std::string wanted = lower(name);
    std::optional<std::string> best;
    std::size_t best_distance = std::max<std::size_t>(1, name.size() / 3);
    for (const std::string& candidate : candidates) {
        const std::size_t shorter = std::min(candidate.size(), name.size());
        if (std::max(candidate.size(), name.size()) - shorter > best_distance) {
            continue;
        }
        const std::size_t distance = edit_distance(wanted, lower(candidate));
        if (distance < best_distance || (distance == best_distance && !best)) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (;;) {
        const std::size_t end = text.find(separator);
        parts.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        text.append(i == 0 ? std::string_view() : separator).append(parts[i]);
    }
    return text;
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        if (length == 0) {
            return false;
        }
        text.remove_prefix(length);
    }
    return true;
}

std::string printable(std::string_view text) {
    static constexpr char digits[] = "0123456789ABCDEF";
    std::string result;
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const std::size_t taken = std::max<std::size_t>(1, length);
        const std::string_view character = text.substr(0, taken);
        if (length == 0 || is_control(character)) {
            for (const char c : character) {
                const auto byte = static_cast<unsigned char>(c);
                result.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
            }
        } else {
            result += character;
        }
        text.remove_prefix(taken);
    }
    return result;
}

}  // namespace twinkle::base
