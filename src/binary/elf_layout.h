#pragma once
// The structure of an ELF file: its header, sections, segments and dynamic table, every offset
// checked. Reads 64-bit, little-endian files further; of others only the header.

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "binary/byte_source.h"

namespace twinkle::binary {

struct Section {
    std::string name;
    std::uint32_t type = 0;
    std::uint64_t flags = 0;
    std::uint64_t address = 0;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;  // in the file: 0 for .bss
};

struct Segment {
    std::uint32_t flags = 0;
    std::uint64_t address = 0;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;  // in the file
};

struct DynamicEntry {
    std::int64_t tag = 0;
    std::uint64_t value = 0;
};

class ElfLayout {
public:
    // None: no ELF file.
    static std::optional<ElfLayout> read(const ByteSource& source);

    const ByteSource& source() const { return *source_; }
    bool readable() const { return readable_; }  // 64-bit and little-endian
    int bits() const { return bits_; }
    bool little_endian() const { return little_endian_; }
    std::uint16_t machine() const { return machine_; }
    std::uint16_t type() const { return type_; }

    // Leaves out those that reach beyond the file.
    const std::vector<Section>& sections() const { return sections_; }
    // The loaded segments (PT_LOAD).
    const std::vector<Segment>& segments() const { return segments_; }
    // Keeps the order of the file, up to the end mark. The loader uses this, not the sections.
    const std::vector<DynamicEntry>& dynamic() const { return dynamic_; }
    std::optional<std::uint64_t> dynamic_value(std::int64_t tag) const;

    // The offset of an address in the file, and how many bytes follow it there.
    struct Place {
        std::uint64_t offset = 0;
        std::uint64_t size = 0;
    };
    std::optional<Place> place_of(std::uint64_t address) const;

private:
    void read_sections(const Elf64_Ehdr& header);
    void read_segments(const Elf64_Ehdr& header);
    void read_dynamic(std::uint64_t offset, std::uint64_t size);

    const ByteSource* source_ = nullptr;
    bool readable_ = false;
    int bits_ = 0;
    bool little_endian_ = true;
    std::uint16_t machine_ = 0;
    std::uint16_t type_ = 0;
    std::vector<Section> sections_;
    std::vector<Segment> segments_;
    std::vector<DynamicEntry> dynamic_;
};

// "x86_64", "aarch64", …; "machine 42" for those without a name here.
std::string machine_name(std::uint16_t machine);

}  // namespace twinkle::binary
