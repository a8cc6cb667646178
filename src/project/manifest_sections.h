#pragma once
// The tables of a manifest, each read by a file of its own.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/document.h"
#include "project/manifest.h"

namespace twinkle::project {

// The document that a table stands in: its name for messages, the folder of its relative paths.
struct DocumentPlace {
    std::string origin;
    std::filesystem::path folder;
};

std::vector<KernelRequest> read_kernels(const base::Node& table, const DocumentPlace& place);
std::vector<LayerBinding> read_layer_bindings(const base::Node& table, const DocumentPlace& place);
std::vector<FunctionBinding> read_functions(const base::Node& table, const DocumentPlace& place);
std::vector<PatternBinding> read_patterns(const base::Node& table, const DocumentPlace& place);
// What stands for a function or pattern of this name: the keys that both have.
FunctionBinding read_replacement(base::TableReader& reader, const std::string& name,
                                 const base::Node& value, const DocumentPlace& place);
// "file.py:function": the file, relative to `folder`, and the function; none: it is neither.
std::optional<std::pair<std::filesystem::path, std::string>> parse_formula(
    const std::string& text, const std::filesystem::path& folder);
inline constexpr std::string_view pattern_forms =
    "\"pattern\" is \"file.py:function\", or a list of such functions of one file";
bool is_name(std::string_view text);  // a Python identifier, in ASCII
// Reads func_impl: "file.py:function" and "package:file.pt2", relative to `folder`, or
// "op:namespace::name". False: it is none of these.
bool set_implementation(FunctionBinding& binding, const std::string& text,
                        const std::filesystem::path& folder);
inline constexpr std::string_view func_impl_forms =
    "\"func_impl\" is \"file.py:function\", \"op:namespace::name\" or \"package:file.pt2\"";
// Reads "package:file.pt2". False: it is something else.
bool set_package(RepositoryKeys& keys, const std::string& text,
                 const std::filesystem::path& folder);
std::map<std::string, target::TargetSpec> read_targets(const base::Node& table,
                                                       const DocumentPlace& place);

// Keys that more than one table has.
Pin read_version(base::TableReader& reader, const base::Node& value);
// Every binding of a table, by name: one table of keys, or a list of them.
template <typename Binding>
std::vector<Binding> read_bindings(const base::Node& table, const DocumentPlace& place,
                                   Binding (*read)(const std::string&, const base::Node&,
                                                   const DocumentPlace&)) {
    std::vector<Binding> bindings;
    for (const auto& [name, at, value] : table.members) {
        const bool several = value.kind == base::Node::Kind::array;
        for (const base::Node& item : several ? value.items : std::vector{value}) {
            bindings.push_back(read(name, item, place));
        }
    }
    return bindings;
}
Pin read_pin(base::TableReader& reader);  // version or revision, not both
std::string read_device(base::TableReader& reader);
std::string read_mode(base::TableReader& reader);

// The repository of a layer or function: repo_id with its pin, or repo_path with package_name.
void read_repository(base::TableReader& reader, const DocumentPlace& place, RepositoryKeys& keys);

}  // namespace twinkle::project
