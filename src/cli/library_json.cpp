#include "cli/library_json.h"

#include "base/text.h"
#include "binary/demangle.h"
#include "binary/limited_api.h"
#include "cli/json_fields.h"

namespace twinkle::cli {
namespace {

using base::Json;

Json symbols_json(const binary::Library& library) {
    Json list = Json::array();
    for (const binary::Symbol& symbol : library.symbols.symbols) {
        list.push_back({{"name", base::printable(symbol.name)},
                        {"demangled", base::printable(binary::demangle(symbol.name))},
                        {"version", text_or_null(base::printable(symbol.version))},
                        {"default_version", symbol.default_version},
                        {"defined", symbol.defined},
                        {"weak", symbol.weak},
                        {"local", symbol.local}});
    }
    return list;
}

Json code_json(const binary::DeviceCodeList& code) {
    Json list = Json::array();
    for (const binary::DeviceCode& one : code.entries) {
        list.push_back({{"kind", binary::device_code_name(one.kind)},
                        {"arch", base::printable(one.arch)},
                        {"compressed", one.compressed},
                        {"relocatable", one.relocatable},
                        {"size", one.size}});
    }
    return list;
}

Json needs_json(const binary::Library& library) {
    Json list = Json::array();
    for (const std::string& name : library.needed) {
        list.push_back(base::printable(name));
    }
    return list;
}

}  // namespace

Json library_json(const std::string& path, const binary::Library& library, bool symbols) {
    Json needs = Json::array();
    for (const binary::VersionNeed& need : library.symbols.needs) {
        Json versions = Json::array();
        for (const auto& version : need.versions) versions.push_back(base::printable(version));
        needs.push_back({{"library", base::printable(need.library)}, {"versions", versions}});
    }
    Json sections = Json::array();
    for (const binary::SectionSize& section : library.sections) {
        sections.push_back({{"name", base::printable(section.name)}, {"size", section.size}});
    }
    bool limited = true;
    Json python = Json::array();
    for (const std::string& symbol : library.python_symbols) {
        limited = limited && binary::in_limited_api(symbol);
        python.push_back(base::printable(symbol));
    }
    Json rpath = Json::array();
    for (const auto& folder : library.rpath) rpath.push_back(base::printable(folder));
    Json runpath = Json::array();
    for (const auto& folder : library.runpath) runpath.push_back(base::printable(folder));
    Json json{{"path", base::printable(path)},
              {"size", library.file_size},
              {"machine", library.machine},
              {"readable", library.readable},
              {"soname", text_or_null(base::printable(library.soname))},
              {"needs", needs_json(library)},
              {"version_needs", needs},
              {"newest_versions", library.newest_versions},
              {"rpath", rpath},
              {"runpath", runpath},
              {"bind_now", library.bind_now},
              {"text_relocations", library.text_relocations},
              {"has_initializers", library.has_initializers},
              {"python_symbols", python},
              {"python_limited_api", limited},
              {"archs", binary::runnable_archs(library.device_code.entries)},
              {"archs_complete", library.device_code.complete},
              {"device_code", code_json(library.device_code)},
              {"sections", sections},
              {"symbols_complete", library.symbols.complete}};
    json["symbols"] = symbols ? symbols_json(library) : Json::array();
    return json;
}

}  // namespace twinkle::cli
