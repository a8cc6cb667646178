#include "binary/library.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace twinkle::binary {
namespace {

constexpr std::size_t most_sections_shown = 4096;

std::vector<std::string> folders(const std::string& path) {
    return path.empty() ? std::vector<std::string>() : base::split(path, ':');
}

void read_dynamic(const ElfLayout& layout, Library& library) {
    const auto flag = [&](std::int64_t tag, std::uint64_t bit) {
        return (layout.dynamic_value(tag).value_or(0) & bit) != 0;
    };
    const auto text = [&](std::int64_t tag) {
        const auto offset = layout.dynamic_value(tag);
        return offset ? dynamic_string(layout, *offset) : std::string();
    };
    for (const DynamicEntry& entry : layout.dynamic()) {
        if (entry.tag == DT_NEEDED) {
            library.needed.push_back(dynamic_string(layout, entry.value));
        }
    }
    library.soname = text(DT_SONAME);
    library.rpath = folders(text(DT_RPATH));
    library.runpath = folders(text(DT_RUNPATH));
    library.bind_now = layout.dynamic_value(DT_BIND_NOW).has_value() ||
                       flag(DT_FLAGS, DF_BIND_NOW) || flag(DT_FLAGS_1, DF_1_NOW);
    library.text_relocations =
        layout.dynamic_value(DT_TEXTREL).has_value() || flag(DT_FLAGS, DF_TEXTREL);
    library.has_initializers = layout.dynamic_value(DT_INIT_ARRAYSZ).value_or(0) != 0;
}

void note_version(std::string_view text, Library& library) {
    const auto version = parse_symbol_version(text);
    if (!version) {
        return;
    }
    std::string& newest = library.newest_versions[version->kind];
    if (newest.empty() || is_newer(version->number, newest)) {
        newest = version->number;
    }
}

std::vector<unsigned> numbers(std::string_view text) {
    std::vector<unsigned> result;
    for (const std::string& part : base::split(text, '.')) {
        unsigned number = 0;
        std::from_chars(part.data(), part.data() + part.size(), number);
        result.push_back(number);
    }
    return result;
}

}  // namespace

bool is_newer(std::string_view version, std::string_view than) {
    return numbers(version) > numbers(than);
}

std::optional<SymbolVersion> parse_symbol_version(std::string_view text) {
    if (text == "GLIBC_ABI_DT_RELR") {
        return SymbolVersion{"GLIBC", "2.36"};
    }
    const auto line = text.rfind('_');
    if (line == std::string_view::npos || line == 0 || line + 1 == text.size() ||
        text.find_first_not_of("0123456789.", line + 1) != std::string_view::npos) {
        return std::nullopt;
    }
    return SymbolVersion{std::string(text.substr(0, line)), std::string(text.substr(line + 1))};
}

bool is_python_symbol(std::string_view name) {
    const auto begins = [&](std::string_view prefix) {
        return name.starts_with(prefix) && name.size() > prefix.size();
    };
    return begins("Py") || begins("_Py");
}

std::optional<Library> read_library(const std::filesystem::path& path) {
    return read_library(FileSource(path));
}

std::optional<Library> read_library(const ByteSource& source) {
    const auto layout = ElfLayout::read(source);
    if (!layout) {
        return std::nullopt;
    }
    Library library;
    library.file_size = source.size();
    library.bits = layout->bits();
    library.little_endian = layout->little_endian();
    library.machine = machine_name(layout->machine());
    library.readable = layout->readable();
    library.shared = layout->type() == ET_DYN;
    if (!library.readable) {
        return library;
    }
    read_dynamic(*layout, library);
    library.symbols = read_symbols(*layout);
    for (const VersionNeed& need : library.symbols.needs) {
        for (const std::string& version : need.versions) {
            note_version(version, library);
        }
    }
    for (const Symbol& symbol : library.symbols.symbols) {
        if (!symbol.defined && is_python_symbol(symbol.name)) {
            library.python_symbols.emplace_back(symbol.name);
        }
    }
    std::sort(library.python_symbols.begin(), library.python_symbols.end());
    library.device_code = read_device_code(*layout);
    for (const Section& section : layout->sections()) {
        if (section.size > 0 && library.sections.size() < most_sections_shown) {
            library.sections.push_back({section.name, section.size});
        }
    }
    std::stable_sort(library.sections.begin(), library.sections.end(),
                     [](const auto& a, const auto& b) { return a.size > b.size; });
    return library;
}

}  // namespace twinkle::binary
