#include "kernel/elf_strings.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string>

#include "base/io_error.h"
#include "base/unique_fd.h"

namespace twinkle::kernel {
namespace {

constexpr std::size_t window_size = 1u << 20;

struct ElfEnd {
    void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, ElfEnd>;

// Embedded device code, unwind tables and symbol names are constant data too, but hold no literals.
bool holds_literals(const GElf_Shdr& header, const char* name) {
    static constexpr std::array<std::string_view, 8> skipped{
        ".nv_fatbin", ".nvFatBinSegment", ".hip_fatbin", ".hipFatBinSegment",
        ".eh_frame",  ".eh_frame_hdr",    ".interp",     ".gcc_except_table"};
    return header.sh_type == SHT_PROGBITS && (header.sh_flags & SHF_ALLOC) != 0 &&
           (header.sh_flags & (SHF_WRITE | SHF_EXECINSTR)) == 0 &&
           (name == nullptr || std::find(skipped.begin(), skipped.end(), name) == skipped.end());
}

// Reads a section through a window that overlaps the one before by the longest string.
class SectionScanner {
public:
    SectionScanner(int fd, std::string_view marker, std::size_t longest,
                   const std::function<void(std::string_view)>& visit)
        : fd_(fd), marker_(marker), longest_(longest), visit_(visit) {}

    void scan(std::uint64_t offset, std::uint64_t size) {
        for (std::uint64_t start = 0; start < size; start += window_size) {
            const std::uint64_t before = std::min<std::uint64_t>(start, longest_ + 1);
            const std::uint64_t wanted =
                std::min<std::uint64_t>(size - start + before, before + window_size + longest_ + 1);
            buffer_.resize(static_cast<std::size_t>(wanted));
            const ssize_t got = ::pread(fd_, buffer_.data(), buffer_.size(),
                                        static_cast<off_t>(offset + start - before));
            if (got <= 0) {
                return;
            }
            const std::string_view window(buffer_.data(), static_cast<std::size_t>(got));
            search(window, static_cast<std::size_t>(before), start == 0);
        }
    }

private:
    // Strings whose marker begins at `from` or later and before the end of this window's own part.
    void search(std::string_view window, std::size_t from, bool first) {
        const std::size_t end = std::min(window.size(), from + window_size);
        for (std::size_t at = window.find(marker_, from); at < end;
             at = window.find(marker_, at + 1)) {
            const std::size_t nul = at == 0 ? std::string_view::npos : window.rfind('\0', at);
            const std::size_t stop = window.find('\0', at);
            const bool begins = nul != std::string_view::npos || first;
            const std::size_t begin = nul == std::string_view::npos ? 0 : nul + 1;
            if (begins && stop != std::string_view::npos && stop - begin <= longest_) {
                visit_(window.substr(begin, stop - begin));
            }
        }
    }

    int fd_;
    std::string_view marker_;
    std::size_t longest_;
    const std::function<void(std::string_view)>& visit_;
    std::string buffer_;
};

}  // namespace

void for_each_constant_string(const std::filesystem::path& library, std::string_view marker,
                              std::size_t longest,
                              const std::function<void(std::string_view)>& visit) {
    const base::UniqueFd fd(::open(library.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info{};
    if (!fd || ::fstat(fd.get(), &info) != 0) {
        base::throw_read_error("library", library, errno);
    }
    elf_version(EV_CURRENT);
    const ElfHandle elf(S_ISREG(info.st_mode) ? elf_begin(fd.get(), ELF_C_READ, nullptr) : nullptr);
    std::size_t names = 0;
    if (!elf || elf_kind(elf.get()) != ELF_K_ELF || elf_getshdrstrndx(elf.get(), &names) != 0) {
        return;
    }
    const auto file_size = static_cast<std::uint64_t>(info.st_size);
    SectionScanner scanner(fd.get(), marker, longest, visit);
    // A hostile file can name the same bytes in 65,000 sections; read no more than it has.
    std::uint64_t left = file_size;
    for (Elf_Scn* section = elf_nextscn(elf.get(), nullptr); section != nullptr;
         section = elf_nextscn(elf.get(), section)) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr || header.sh_offset > file_size ||
            header.sh_size > file_size - header.sh_offset || header.sh_size > left) {
            continue;
        }
        if (holds_literals(header, elf_strptr(elf.get(), names, header.sh_name))) {
            left -= header.sh_size;
            scanner.scan(header.sh_offset, header.sh_size);
        }
    }
}

}  // namespace twinkle::kernel
