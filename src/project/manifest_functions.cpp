// [functions] and [targets].

#include <algorithm>

#include "base/text.h"
#include "project/manifest_sections.h"

namespace twinkle::project {

using base::Node;
using base::TableReader;

bool is_name(std::string_view text) {
    return !text.empty() && (text.front() < '0' || text.front() > '9') &&
           text.find_first_not_of(word_characters) == std::string_view::npos;
}

bool set_package(RepositoryKeys& keys, const std::string& text,
                 const std::filesystem::path& folder) {
    constexpr std::string_view prefix = "package:";
    if (!text.starts_with(prefix) || !text.ends_with(".pt2")) {
        return false;
    }
    keys.package_text = text.substr(prefix.size());
    keys.package_file = (folder / keys.package_text).lexically_normal();
    return true;
}

bool set_implementation(FunctionBinding& binding, const std::string& text,
                        const std::filesystem::path& folder) {
    binding.func_impl = text;
    if (set_package(binding, text, folder)) {
        return true;
    }
    if (text.starts_with("op:")) {
        binding.op = text.substr(3);
        const auto colons = binding.op.find("::");
        return colons != std::string::npos && is_name(binding.op.substr(0, colons)) &&
               is_name(binding.op.substr(colons + 2));
    }
    const auto colon = text.rfind(':');
    if (colon == std::string::npos || !text.substr(0, colon).ends_with(".py")) {
        return false;
    }
    binding.source_file = (folder / text.substr(0, colon)).lexically_normal();
    binding.source_function = text.substr(colon + 1);
    return is_name(binding.source_function);
}

FunctionBinding read_replacement(TableReader& reader, const std::string& name, const Node& value,
                                 const DocumentPlace& place) {
    FunctionBinding binding;
    binding.name = name;
    binding.where = reader.where(value);
    if (const Node* impl = reader.find("func_impl")) {
        if (!set_implementation(binding, reader.as_string(*impl, "func_impl"), place.folder)) {
            reader.fail(*impl, std::string(func_impl_forms));
        }
    }
    read_repository(reader, place, binding);
    const auto func_name = reader.string("func_name");
    binding.func_name = func_name.value_or(name);
    if (!binding.func_impl.empty() && binding.func_name != name) {
        reader.fail(
            *reader.find("func_name"),
            "\"func_name\" names a function of a kernel, and \"func_impl\" has none: what is "
            "replaced is what the table is called");
    }
    binding.device = read_device(reader);
    binding.mode = read_mode(reader);
    reader.finish();
    const int sources = static_cast<int>(!binding.func_impl.empty()) +
                        static_cast<int>(!binding.repo_id.empty()) +
                        static_cast<int>(!binding.repo_path.empty());
    if (sources > 1 || (sources == 0 && !func_name)) {
        reader.fail(value,
                    "exactly one of \"func_impl\", \"repo_id\" and \"repo_path\" is needed, or "
                    "\"func_name\" alone, of the bundled kernels");
    }
    return binding;
}

namespace {

FunctionBinding read_function(const std::string& name, const Node& value,
                              const DocumentPlace& place) {
    TableReader reader(value, place.origin, "the function \"" + base::printable(name) + "\"");
    const std::string target_module = reader.required_string("target_module");
    if (target_module.empty()) {
        reader.fail(*reader.find("target_module"), "\"target_module\" is empty");
    }
    FunctionBinding binding = read_replacement(reader, name, value, place);
    binding.target_module = target_module;
    return binding;
}

}  // namespace

std::vector<FunctionBinding> read_functions(const Node& table, const DocumentPlace& place) {
    const TableReader reader(table, place.origin, "the table of functions");
    return read_bindings(table, place, read_function);
}

std::map<std::string, target::TargetSpec> read_targets(const Node& table,
                                                       const DocumentPlace& place) {
    const TableReader targets(table, place.origin, "the table of targets");
    std::map<std::string, target::TargetSpec> result;
    for (const auto& [name, at, value] : table.members) {
        if (value.kind == Node::Kind::string) {
            targets.fail(value, "the target \"" + base::printable(name) + "\" is a string",
                         "write it as a table: { torch = \"2.13\", backend = \"cu130\", arch = "
                         "\"9.0\" }");
        }
        TableReader reader(value, place.origin, "the target \"" + base::printable(name) + "\"");
        target::TargetSpec spec{{}, reader.where(value)};
        for (const std::string& key : target::target_keys()) {
            const Node* entry = reader.find(key);
            if (entry == nullptr) {
                continue;
            }
            // A number would lose the zero of 2.10.
            if (entry->kind == Node::Kind::number) {
                reader.fail(*entry, "\"" + key + "\" is a number",
                            "write it in quotation marks, so that 2.10 is not 2.1");
            }
            spec.values[key] = entry->kind == Node::Kind::boolean   ? (entry->boolean ? "1" : "0")
                               : entry->kind == Node::Kind::integer ? std::to_string(entry->integer)
                                                                    : reader.as_string(*entry, key);
        }
        reader.finish();
        if (name == "here") {
            reader.fail(value, "\"here\" is this machine; give the target another name");
        }
        result.emplace(name, std::move(spec));
    }
    return result;
}

}  // namespace twinkle::project
