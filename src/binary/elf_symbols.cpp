#include "binary/elf_symbols.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace twinkle::binary {
namespace {

constexpr std::uint64_t most_symbols = 1u << 19;
constexpr std::uint64_t longest_symbol_names = 32u << 20;
constexpr std::uint64_t longest_string = 4096;
constexpr int most_versions = 1 << 15;  // an index has 15 bits
constexpr std::uint64_t most_buckets = 1u << 22;

std::string_view text_at(const std::string& names, std::uint64_t offset) {
    if (offset >= names.size()) {
        return {};
    }
    const char* text = names.data() + offset;
    return {text, ::strnlen(text, names.size() - static_cast<std::size_t>(offset))};
}

class SymbolReader {
public:
    explicit SymbolReader(const ElfLayout& layout) : layout_(layout), source_(layout.source()) {}

    SymbolTable read() {
        SymbolTable table;
        names_ = std::make_shared<const std::string>(read_names());
        read_needs(table);
        read_definitions();
        read_symbols(table);
        table.names = names_;
        return table;
    }

private:
    std::optional<ElfLayout::Place> place(std::int64_t tag) const {
        const auto address = layout_.dynamic_value(tag);
        return address ? layout_.place_of(*address) : std::nullopt;
    }

    std::string read_names() const {
        const auto where = place(DT_STRTAB);
        const auto size = layout_.dynamic_value(DT_STRSZ);
        return where && size ? source_.bytes(where->offset, std::min(*size, where->size),
                                             longest_symbol_names)
                             : std::string();
    }

    // A list of records, each with its own list; offsets only increase, so that it ends.
    void read_needs(SymbolTable& table) {
        const auto start = place(DT_VERNEED);
        if (!start) {
            return;
        }
        int left = most_versions;
        for (std::uint64_t at = start->offset; left > 0; --left) {
            const auto need = source_.get<Elf64_Verneed>(at);
            if (!need) {
                return;
            }
            VersionNeed found{std::string(text_at(*names_, need->vn_file)), {}};
            std::uint64_t entry_at = at + need->vn_aux;
            for (int i = 0; i < need->vn_cnt && left > 0; ++i, --left) {
                const auto entry = source_.get<Elf64_Vernaux>(entry_at);
                if (!entry) {
                    break;
                }
                const auto name = text_at(*names_, entry->vna_name);
                found.versions.emplace_back(name);
                versions_[entry->vna_other & 0x7fff] = name;
                if (entry->vna_next == 0) {
                    break;
                }
                entry_at += entry->vna_next;
            }
            table.needs.push_back(std::move(found));
            if (need->vn_next == 0) {
                return;
            }
            at += need->vn_next;
        }
    }

    void read_definitions() {
        const auto start = place(DT_VERDEF);
        if (!start) {
            return;
        }
        std::uint64_t at = start->offset;
        for (int left = most_versions; left > 0; --left) {
            const auto definition = source_.get<Elf64_Verdef>(at);
            if (!definition) {
                return;
            }
            const auto name = source_.get<Elf64_Verdaux>(at + definition->vd_aux);
            // The first definition is the library itself.
            if (name && (definition->vd_flags & VER_FLG_BASE) == 0) {
                versions_.emplace(definition->vd_ndx & 0x7fff, text_at(*names_, name->vda_name));
            }
            if (definition->vd_next == 0) {
                return;
            }
            at += definition->vd_next;
        }
    }

    void read_symbols(SymbolTable& table) const {
        const auto where = place(DT_SYMTAB);
        if (!where) {
            return;
        }
        const std::uint64_t count = std::min(symbol_count(*where), where->size / sizeof(Elf64_Sym));
        table.complete = count <= most_symbols;
        const std::uint64_t used = std::min(count, most_symbols);
        const auto versions = place(DT_VERSYM);
        constexpr std::uint64_t chunk = 4096;  // bounded memory however many there are
        for (std::uint64_t from = 0; from < used; from += chunk) {
            const std::uint64_t wanted = std::min(chunk, used - from);
            const std::string bytes = source_.bytes(where->offset + from * sizeof(Elf64_Sym),
                                                    wanted * sizeof(Elf64_Sym), UINT64_MAX);
            const std::string indexes =
                versions ? source_.bytes(versions->offset + from * 2, wanted * 2, UINT64_MAX)
                         : std::string();
            for (std::size_t i = 0; (i + 1) * sizeof(Elf64_Sym) <= bytes.size(); ++i) {
                if (from + i == 0) {
                    continue;  // the first one is no symbol
                }
                Elf64_Sym entry;
                std::memcpy(&entry, bytes.data() + i * sizeof entry, sizeof entry);
                std::uint16_t version = 0;
                if ((i + 1) * sizeof version <= indexes.size()) {
                    std::memcpy(&version, indexes.data() + i * sizeof version, sizeof version);
                }
                table.symbols.push_back(symbol(entry, version));
            }
        }
    }

    Symbol symbol(const Elf64_Sym& entry, std::uint16_t version) const {
        Symbol result;
        result.name = text_at(*names_, entry.st_name);
        result.defined = entry.st_shndx != SHN_UNDEF;
        result.weak = ELF64_ST_BIND(entry.st_info) == STB_WEAK;
        result.local = ELF64_ST_BIND(entry.st_info) == STB_LOCAL;
        const auto type = ELF64_ST_TYPE(entry.st_info);
        result.function = type == STT_FUNC || type == STT_GNU_IFUNC;
        if (const auto found = versions_.find(version & 0x7fff); found != versions_.end()) {
            result.version = found->second;
            result.default_version = result.defined && (version & 0x8000) == 0;
        }
        return result;
    }

    // The dynamic table lacks this count: the section has it, or the hash tables.
    std::uint64_t symbol_count(const ElfLayout::Place& symbols) const {
        for (const Section& section : layout_.sections()) {
            if (section.type == SHT_DYNSYM && section.offset == symbols.offset) {
                return section.size / sizeof(Elf64_Sym);
            }
        }
        if (const auto hash = place(DT_HASH)) {
            if (const auto chains = source_.get<std::uint32_t>(hash->offset + 4)) {
                return *chains;
            }
        }
        const std::uint64_t hashed = gnu_hash_count();
        if (hashed > 0) {
            return hashed;
        }
        // Linkers place the strings after the symbols.
        const auto strings = place(DT_STRTAB);
        return strings && strings->offset > symbols.offset
                   ? (strings->offset - symbols.offset) / sizeof(Elf64_Sym)
                   : 0;
    }

    // The last symbol of the last chain; 0 if no symbol is hashed.
    std::uint64_t gnu_hash_count() const {
        const auto hash = place(DT_GNU_HASH);
        const auto buckets = hash ? source_.get<std::uint32_t>(hash->offset) : std::nullopt;
        const auto first = hash ? source_.get<std::uint32_t>(hash->offset + 4) : std::nullopt;
        const auto bloom = hash ? source_.get<std::uint32_t>(hash->offset + 8) : std::nullopt;
        if (!buckets || !first || !bloom || *buckets > most_buckets) {
            return 0;
        }
        const std::uint64_t table = hash->offset + 16 + *bloom * std::uint64_t{8};
        const std::string bytes =
            source_.bytes(table, *buckets * std::uint64_t{4}, std::uint64_t{4} * most_buckets);
        std::uint32_t last = 0;
        for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
            std::uint32_t value = 0;
            std::memcpy(&value, bytes.data() + i, 4);
            last = std::max(last, value);
        }
        if (last < *first || last == 0) {
            return 0;
        }
        for (std::uint64_t i = last; i < last + most_symbols; ++i) {
            const auto link =
                source_.get<std::uint32_t>(table + *buckets * std::uint64_t{4} + (i - *first) * 4);
            if (!link || (*link & 1) != 0) {
                return i + 1;
            }
        }
        return 0;
    }

    const ElfLayout& layout_;
    const ByteSource& source_;
    std::shared_ptr<const std::string> names_;
    std::map<std::uint16_t, std::string_view> versions_;
};

}  // namespace

SymbolTable read_symbols(const ElfLayout& layout) {
    return SymbolReader(layout).read();
}

std::string dynamic_string(const ElfLayout& layout, std::uint64_t offset) {
    const auto address = layout.dynamic_value(DT_STRTAB);
    const auto where = address ? layout.place_of(*address) : std::nullopt;
    const auto size = layout.dynamic_value(DT_STRSZ);
    if (!where || !size || offset >= std::min(*size, where->size)) {
        return {};
    }
    const std::uint64_t left = std::min(*size, where->size) - offset;
    const std::string text = layout.source().bytes(where->offset + offset, left, longest_string);
    return text.substr(0, text.find('\0'));
}

}  // namespace twinkle::binary
