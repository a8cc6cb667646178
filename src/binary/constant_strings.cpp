#include "binary/constant_strings.h"

#include <algorithm>
#include <array>
#include <string>

namespace twinkle::binary {
namespace {

constexpr std::size_t window_size = 1u << 20;

// Embedded device code, unwind tables and symbol names are constant data, too, but hold no
// literals.
bool holds_literals(const Section& section) {
    static constexpr std::array<std::string_view, 9> skipped{
        ".nv_fatbin", "__nv_relfatbin", ".nvFatBinSegment", ".hip_fatbin",      ".hipFatBinSegment",
        ".eh_frame",  ".eh_frame_hdr",  ".interp",          ".gcc_except_table"};
    return section.type == SHT_PROGBITS && (section.flags & SHF_ALLOC) != 0 &&
           (section.flags & (SHF_WRITE | SHF_EXECINSTR)) == 0 &&
           std::find(skipped.begin(), skipped.end(), section.name) == skipped.end();
}

// Reads a range in windows, each overlapping the previous one by the longest string.
class RangeScanner {
public:
    RangeScanner(const ByteSource& source, std::string_view marker, std::size_t longest,
                 const std::function<void(std::string_view)>& visit)
        : source_(source), marker_(marker), longest_(longest), visit_(visit) {}

    void scan(std::uint64_t offset, std::uint64_t size) {
        for (std::uint64_t start = 0; start < size; start += window_size) {
            const std::uint64_t before = std::min<std::uint64_t>(start, longest_ + 1);
            const std::uint64_t wanted =
                std::min<std::uint64_t>(size - start + before, before + window_size + longest_ + 1);
            buffer_.resize(static_cast<std::size_t>(wanted));
            const std::size_t got =
                source_.read(offset + start - before, buffer_.data(), buffer_.size());
            if (got == 0) {
                return;
            }
            const std::string_view window(buffer_.data(), got);
            search(window, static_cast<std::size_t>(before), start == 0);
        }
    }

private:
    // Strings whose marker begins at `from` or later and before the end of this window's own part.
    void search(std::string_view window, std::size_t from, bool first) {
        const std::size_t end = std::min(window.size(), from + window_size);
        // Proceeds from string to string, so that one full of markers is not read once for each.
        for (std::size_t at = window.find(marker_, from); at < end;) {
            const std::size_t nul = at == 0 ? std::string_view::npos : window.rfind('\0', at);
            const std::size_t stop = window.find('\0', at);
            if (stop == std::string_view::npos) {
                return;
            }
            const bool begins = nul != std::string_view::npos || first;
            const std::size_t begin = nul == std::string_view::npos ? 0 : nul + 1;
            if (begins && stop - begin <= longest_) {
                visit_(window.substr(begin, stop - begin));
            }
            at = window.find(marker_, stop);
        }
    }

    const ByteSource& source_;
    std::string_view marker_;
    std::size_t longest_;
    const std::function<void(std::string_view)>& visit_;
    std::string buffer_;
};

}  // namespace

void for_each_constant_string(const ElfLayout& layout, std::string_view marker, std::size_t longest,
                              const std::function<void(std::string_view)>& visit) {
    RangeScanner scanner(layout.source(), marker, longest, visit);
    // A hostile file can name the same bytes in 65,000 sections; read no more than its size.
    std::uint64_t left = layout.source().size();
    const auto scan = [&](std::uint64_t offset, std::uint64_t size) {
        if (size <= left) {
            left -= size;
            scanner.scan(offset, size);
        }
    };
    for (const Section& section : layout.sections()) {
        if (holds_literals(section)) {
            scan(section.offset, section.size);
        }
    }
    if (layout.sections().empty()) {  // stripped of everything that is not loaded
        for (const Segment& segment : layout.segments()) {
            if ((segment.flags & (PF_R | PF_W | PF_X)) == PF_R) {
                scan(segment.offset, segment.size);
            }
        }
    }
}

}  // namespace twinkle::binary
