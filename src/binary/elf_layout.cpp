#include "binary/elf_layout.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace twinkle::binary {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are read as they lie");

// More than any real file has; a hostile file cannot make us read beyond.
constexpr std::uint64_t most_sections = 1u << 16;
constexpr std::uint64_t most_segments = 1u << 12;
constexpr std::uint64_t most_dynamic_entries = 1u << 16;
constexpr std::uint64_t longest_names = 4u << 20;
constexpr std::size_t longest_name = 256;

bool fits(std::uint64_t offset, std::uint64_t size, std::uint64_t whole) {
    return offset <= whole && size <= whole - offset;
}

template <class T>
std::vector<T> read_table(const ByteSource& source, std::uint64_t offset, std::uint64_t count,
                          std::uint64_t entry_size) {
    std::vector<T> table;
    if (entry_size != sizeof(T)) {
        return table;
    }
    const std::string bytes = source.bytes(offset, count * sizeof(T), count * sizeof(T));
    table.resize(bytes.size() / sizeof(T));
    if (!table.empty()) {
        std::memcpy(table.data(), bytes.data(), table.size() * sizeof(T));
    }
    return table;
}

}  // namespace

std::optional<ElfLayout> ElfLayout::read(const ByteSource& source) {
    unsigned char ident[EI_NIDENT];
    if (source.read(0, reinterpret_cast<char*>(ident), EI_NIDENT) != EI_NIDENT ||
        std::memcmp(ident, ELFMAG, SELFMAG) != 0) {
        return std::nullopt;
    }
    ElfLayout layout;
    layout.source_ = &source;
    layout.bits_ = ident[EI_CLASS] == ELFCLASS64 ? 64 : ident[EI_CLASS] == ELFCLASS32 ? 32 : 0;
    layout.little_endian_ = ident[EI_DATA] == ELFDATA2LSB;
    // Type and machine are at the same offset in both classes.
    const auto type = source.get<std::uint16_t>(offsetof(Elf64_Ehdr, e_type));
    const auto machine = source.get<std::uint16_t>(offsetof(Elf64_Ehdr, e_machine));
    if (!type || !machine || layout.bits_ == 0) {
        return std::nullopt;
    }
    layout.type_ = *type;
    layout.machine_ = *machine;
    if (layout.bits_ != 64 || !layout.little_endian_) {
        return layout;
    }
    const auto header = source.get<Elf64_Ehdr>(0);
    if (!header) {
        return std::nullopt;
    }
    layout.readable_ = true;
    layout.read_sections(*header);
    layout.read_segments(*header);
    return layout;
}

void ElfLayout::read_sections(const Elf64_Ehdr& header) {
    if (header.e_shoff == 0) {
        return;
    }
    // With many sections the real numbers are in the first section header.
    const auto first = source_->get<Elf64_Shdr>(header.e_shoff);
    if (!first) {
        return;
    }
    const std::uint64_t count = header.e_shnum != 0 ? header.e_shnum : first->sh_size;
    const std::uint64_t names_at =
        header.e_shstrndx == SHN_XINDEX ? first->sh_link : header.e_shstrndx;
    const auto table = read_table<Elf64_Shdr>(*source_, header.e_shoff,
                                              std::min(count, most_sections), header.e_shentsize);
    std::string names;
    if (names_at < table.size() && table[names_at].sh_type == SHT_STRTAB) {
        names = source_->bytes(table[names_at].sh_offset, table[names_at].sh_size, longest_names);
    }
    for (const Elf64_Shdr& entry : table) {
        const std::uint64_t size = entry.sh_type == SHT_NOBITS ? 0 : entry.sh_size;
        if (entry.sh_type == SHT_NULL || !fits(entry.sh_offset, size, source_->size())) {
            continue;
        }
        Section section{{}, entry.sh_type, entry.sh_flags, entry.sh_addr, entry.sh_offset, size};
        if (entry.sh_name < names.size()) {
            const char* name = names.data() + entry.sh_name;
            section.name.assign(
                name, ::strnlen(name, std::min(longest_name, names.size() - entry.sh_name)));
        }
        sections_.push_back(std::move(section));
    }
}

void ElfLayout::read_segments(const Elf64_Ehdr& header) {
    const auto table = read_table<Elf64_Phdr>(
        *source_, header.e_phoff, std::min<std::uint64_t>(header.e_phnum, most_segments),
        header.e_phentsize);
    for (const Elf64_Phdr& entry : table) {
        if (!fits(entry.p_offset, entry.p_filesz, source_->size())) {
            continue;
        }
        if (entry.p_type == PT_LOAD) {
            segments_.push_back({entry.p_flags, entry.p_vaddr, entry.p_offset, entry.p_filesz});
        } else if (entry.p_type == PT_DYNAMIC && dynamic_.empty()) {
            read_dynamic(entry.p_offset, entry.p_filesz);
        }
    }
}

void ElfLayout::read_dynamic(std::uint64_t offset, std::uint64_t size) {
    const std::uint64_t count = std::min(size / sizeof(Elf64_Dyn), most_dynamic_entries);
    for (const Elf64_Dyn& entry :
         read_table<Elf64_Dyn>(*source_, offset, count, sizeof(Elf64_Dyn))) {
        if (entry.d_tag == DT_NULL) {
            return;
        }
        dynamic_.push_back({entry.d_tag, entry.d_un.d_val});
    }
}

std::optional<std::uint64_t> ElfLayout::dynamic_value(std::int64_t tag) const {
    // If a tag occurs twice, the loader uses the last one.
    for (auto entry = dynamic_.rbegin(); entry != dynamic_.rend(); ++entry) {
        if (entry->tag == tag) {
            return entry->value;
        }
    }
    return std::nullopt;
}

std::optional<ElfLayout::Place> ElfLayout::place_of(std::uint64_t address) const {
    for (const Segment& segment : segments_) {
        if (address >= segment.address && address - segment.address < segment.size) {
            const std::uint64_t into = address - segment.address;
            return Place{segment.offset + into, segment.size - into};
        }
    }
    return std::nullopt;
}

std::string machine_name(std::uint16_t machine) {
    switch (machine) {
        case EM_X86_64: return "x86_64";
        case EM_AARCH64: return "aarch64";
        case EM_386: return "i386";
        case EM_ARM: return "arm";
        case EM_RISCV: return "riscv";
        case EM_PPC64: return "ppc64";
        case EM_S390: return "s390";
        case EM_CUDA: return "cuda";
        default: return "machine " + std::to_string(machine);
    }
}

}  // namespace twinkle::binary
