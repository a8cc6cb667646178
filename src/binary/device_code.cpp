#include "binary/device_code.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace twinkle::binary {
namespace {

// Limit on the containers and entries of any kind that are read in one section.
constexpr std::size_t most_entries = 1u << 17;
constexpr std::uint32_t fatbin_magic = 0xba55ed50;
constexpr std::uint64_t longest_padding = 4096;
constexpr std::string_view bundle_magic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::uint64_t bundle_alignment = 4096;
constexpr std::uint64_t longest_target = 256;

// A container: its header, then entries, each a header and its code.
struct FatbinHeader {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t header_size;
    std::uint64_t size;  // of all entries
};
struct EntryHeader {
    std::uint16_t kind;
    std::uint16_t version;
    std::uint32_t header_size;
    std::uint64_t size;  // of the code, with padding
    std::uint32_t compressed_size;
    std::uint32_t options_offset;
    std::uint16_t minor;
    std::uint16_t major;
    std::uint32_t arch;  // 90
    std::uint32_t name_offset;
    std::uint32_t name_size;
    std::uint64_t flags;
};
static_assert(sizeof(FatbinHeader) == 16 && sizeof(EntryHeader) == 48);

constexpr std::uint16_t kind_ptx = 1;
constexpr std::uint16_t kind_cubin = 2;
constexpr std::uint16_t kind_ir = 8;
constexpr std::uint64_t flag_compressed = 0x1000 | 0x2000 | 0x8000;  // zlib-like, LZ4, Zstandard
constexpr std::uint64_t flag_arch_specific = 0x100000;               // sm_90a
constexpr std::uint64_t flag_family_specific = 0x200000;             // sm_100f

std::optional<DeviceCode> code_of(const EntryHeader& entry) {
    DeviceCode code;
    switch (entry.kind) {
        case kind_ptx: code.kind = DeviceCodeKind::ptx; break;
        case kind_cubin: code.kind = DeviceCodeKind::cubin; break;
        case kind_ir: code.kind = DeviceCodeKind::lto_ir; break;
        default: return std::nullopt;
    }
    code.arch = "sm_" + std::to_string(entry.arch);
    if ((entry.flags & flag_arch_specific) != 0) {
        code.arch += 'a';
    } else if ((entry.flags & flag_family_specific) != 0) {
        code.arch += 'f';
    }
    code.compressed = (entry.flags & flag_compressed) != 0;
    code.size = entry.size;
    return code;
}

// Adds the entries of one container; false: it is broken.
bool read_entries(const ByteSource& source, std::uint64_t at, std::uint64_t end, bool relocatable,
                  std::size_t& left, DeviceCodeList& list) {
    while (end - at >= sizeof(EntryHeader)) {
        const auto entry = source.get<EntryHeader>(at);
        if (!entry || entry->header_size < sizeof(EntryHeader) || entry->header_size > end - at ||
            entry->size > end - at - entry->header_size || left == 0) {
            return false;
        }
        --left;
        if (auto code = code_of(*entry)) {
            code->relocatable = relocatable;
            list.entries.push_back(std::move(*code));
        } else {
            list.complete = false;
        }
        at += entry->header_size + entry->size;
    }
    return at == end;
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
    return value + (to - value % to) % to;
}

void append(DeviceCodeList& to, DeviceCodeList&& from) {
    to.complete =
        to.complete && from.complete && to.entries.size() + from.entries.size() <= most_entries;
    const std::size_t room = most_entries - std::min(most_entries, to.entries.size());
    from.entries.resize(std::min(from.entries.size(), room));
    std::move(from.entries.begin(), from.entries.end(), std::back_inserter(to.entries));
}

// "sm_90a" → "9.0a"
std::string capability(std::string_view arch) {
    constexpr std::string_view prefix = "sm_";
    if (!arch.starts_with(prefix)) {
        return std::string(arch);
    }
    arch.remove_prefix(prefix.size());
    unsigned number = 0;
    const auto [end, error] = std::from_chars(arch.data(), arch.data() + arch.size(), number);
    return std::to_string(number / 10) + "." + std::to_string(number % 10) +
           std::string(end, arch.data() + arch.size());
}

}  // namespace

std::string_view device_code_name(DeviceCodeKind kind) {
    switch (kind) {
        case DeviceCodeKind::cubin: return "cubin";
        case DeviceCodeKind::ptx: return "ptx";
        case DeviceCodeKind::lto_ir: return "lto-ir";
        case DeviceCodeKind::hip: return "hip";
    }
    return "";
}

DeviceCodeList read_fatbins(const ByteSource& source, std::uint64_t offset, std::uint64_t size,
                            bool relocatable) {
    DeviceCodeList list;
    if (offset > source.size() || size > source.size() - offset) {
        list.complete = false;
        return list;
    }
    const std::uint64_t end = offset + size;
    std::uint64_t padding = 0;
    std::size_t left = most_entries;
    for (std::uint64_t at = offset; end - at >= sizeof(FatbinHeader);) {
        const auto header = source.get<FatbinHeader>(at);
        if (!header || left == 0) {
            list.complete = false;
            return list;
        }
        --left;
        if (header->magic == 0 && padding < longest_padding) {  // linkers align containers
            padding += 8;
            at = std::min(end, at + 8);
            continue;
        }
        padding = 0;
        if (header->magic != fatbin_magic || header->header_size < sizeof(FatbinHeader) ||
            header->header_size > end - at || header->size > end - at - header->header_size ||
            !read_entries(source, at + header->header_size, at + header->header_size + header->size,
                          relocatable, left, list)) {
            list.complete = false;
            return list;
        }
        at = std::min(end, round_up(at + header->header_size + header->size, 8));
    }
    return list;
}

DeviceCodeList read_hip_bundles(const ByteSource& source, std::uint64_t offset,
                                std::uint64_t size) {
    DeviceCodeList list;
    if (offset > source.size() || size > source.size() - offset) {
        list.complete = false;
        return list;
    }
    const std::uint64_t end = offset + size;
    std::uint64_t at = offset;
    std::size_t left = most_entries;
    while (end - at > bundle_magic.size() + 8) {
        const std::string magic = source.bytes(at, bundle_magic.size(), bundle_magic.size());
        if (magic.front() == '\0') {
            at = std::min(end, round_up(at - offset + 1, bundle_alignment) + offset);
            continue;
        }
        const auto count = source.get<std::uint64_t>(at + bundle_magic.size());
        if (magic != bundle_magic || !count || *count > left) {
            // A compressed bundle does not list its contents.
            list.complete = false;
            return list;
        }
        left -= static_cast<std::size_t>(*count);
        std::uint64_t entry_at = at + bundle_magic.size() + 8;
        std::uint64_t last = entry_at;
        for (std::uint64_t i = 0; i < *count; ++i) {
            const auto code_at = source.get<std::uint64_t>(entry_at);
            const auto code_size = source.get<std::uint64_t>(entry_at + 8);
            const auto length = source.get<std::uint64_t>(entry_at + 16);
            if (!code_at || !code_size || !length || *length > longest_target ||
                *code_at > end - at || *code_size > end - at - *code_at) {
                list.complete = false;
                return list;
            }
            // "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-"; "host-…" is an empty place.
            const std::string target = source.bytes(entry_at + 24, *length, longest_target);
            const auto gfx = target.find("gfx");
            if (target.starts_with("hip") && gfx != std::string::npos) {
                list.entries.push_back(
                    {DeviceCodeKind::hip, target.substr(gfx), false, false, *code_size});
            }
            last = std::max(last, at + *code_at + *code_size);
            entry_at += 24 + *length;
            last = std::max(last, entry_at);
        }
        at = std::min(end, round_up(last - offset, bundle_alignment) + offset);
    }
    return list;
}

DeviceCodeList read_device_code(const ElfLayout& layout) {
    DeviceCodeList list;
    for (const Section& section : layout.sections()) {
        if (section.name == ".nv_fatbin" || section.name == "__nv_relfatbin") {
            append(list, read_fatbins(layout.source(), section.offset, section.size,
                                      section.name == "__nv_relfatbin"));
        } else if (section.name == ".hip_fatbin") {
            append(list, read_hip_bundles(layout.source(), section.offset, section.size));
        }
    }
    return list;
}

std::vector<std::string> runnable_archs(const std::vector<DeviceCode>& code) {
    const bool linked = std::any_of(code.begin(), code.end(),
                                    [](const DeviceCode& one) { return !one.relocatable; });
    // Sorts numerically, with PTX after the code of its architecture.
    std::map<std::pair<std::size_t, std::string>, bool> archs;
    for (const DeviceCode& one : code) {
        if ((linked && one.relocatable) || one.kind == DeviceCodeKind::lto_ir) {
            continue;
        }
        const std::string name = capability(one.arch);
        bool& ptx = archs[{name.find('.'), name}];
        ptx = ptx || one.kind == DeviceCodeKind::ptx;
    }
    std::vector<std::string> names;
    for (const auto& [key, ptx] : archs) {
        names.push_back(key.second + (ptx ? "+PTX" : ""));
    }
    return names;
}

}  // namespace twinkle::binary
