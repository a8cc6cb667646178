#include "python/unicode.h"

#include "python/unicode_tables.h"

#include <algorithm>

namespace twinkle::python {
namespace {

bool contains(std::span<const CodeRange> ranges, std::uint32_t code) {
    const auto after =
        std::upper_bound(ranges.begin(), ranges.end(), code,
                         [](std::uint32_t value, const CodeRange& r) { return value < r.first; });
    return after != ranges.begin() && code <= std::prev(after)->last;
}

bool is_ascii_letter(std::uint32_t code) {
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || code == '_';
}

// Bytes of the sequence that begins with `lead`; 0 if none does.
std::size_t sequence_size(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead >= 0xC2 && lead <= 0xDF) return 2;
    if (lead >= 0xE0 && lead <= 0xEF) return 3;
    if (lead >= 0xF0 && lead <= 0xF4) return 4;
    return 0;
}

}  // namespace

std::optional<std::size_t> invalid_utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t size = sequence_size(static_cast<unsigned char>(text[i]));
        if (size == 1) {
            ++i;
            continue;
        }
        if (size == 0 || text.size() - i < size) {
            return i;
        }
        for (std::size_t k = 1; k < size; ++k) {
            if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) {
                return i;
            }
        }
        const std::uint32_t code = decode_utf8(text, i).value;
        const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
        if (overlong || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) {
            return i;
        }
        i += size;
    }
    return std::nullopt;
}

CodePoint decode_utf8(std::string_view text, std::size_t offset) {
    const auto lead = static_cast<unsigned char>(text[offset]);
    const std::size_t size = std::max<std::size_t>(1, sequence_size(lead));
    static constexpr unsigned char kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    std::uint32_t value = lead & kLeadBits[size];
    for (std::size_t k = 1; k < size; ++k) {
        value = value << 6 | (static_cast<unsigned char>(text[offset + k]) & 0x3F);
    }
    return {value, size};
}

void append_utf8(std::string& out, std::uint32_t code) {
    const auto tail = [&](unsigned shift) {
        out += static_cast<char>(0x80 | (code >> shift & 0x3F));
    };
    if (code < 0x80) {
        out += static_cast<char>(code);
    } else if (code < 0x800) {
        out += static_cast<char>(0xC0 | code >> 6);
        tail(0);
    } else if (code < 0x10000) {
        out += static_cast<char>(0xE0 | code >> 12);
        tail(6);
        tail(0);
    } else {
        out += static_cast<char>(0xF0 | code >> 18);
        tail(12);
        tail(6);
        tail(0);
    }
}

bool is_identifier_start(std::uint32_t code) {
    return code < 0x80 ? is_ascii_letter(code) : contains(identifier_start_ranges(), code);
}

bool is_identifier_continue(std::uint32_t code) {
    return code < 0x80 ? is_ascii_letter(code) || (code >= '0' && code <= '9')
                       : contains(identifier_continue_ranges(), code);
}

bool is_normalization_stable(std::uint32_t code) {
    return code < 0x80 || !contains(normalization_unstable_ranges(), code);
}

}  // namespace twinkle::python
