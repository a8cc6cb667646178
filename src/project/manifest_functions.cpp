// [functions] and [targets].

#include <algorithm>

#include "base/text.h"
#include "project/manifest_sections.h"

namespace twinkle::project {
namespace {

using base::Node;
using base::TableReader;

FunctionBinding read_function(const std::string& name, const Node& value,
                              const DocumentPlace& place) {
    TableReader reader(value, place.origin, "the function \"" + base::printable(name) + "\"");
    FunctionBinding binding;
    binding.name = name;
    binding.where = reader.where(value);
    binding.target_module = reader.required_string("target_module");
    binding.func_impl = reader.string("func_impl").value_or("");
    RepositoryKeys repository = read_repository(reader, place);
    binding.repo_id = std::move(repository.repo_id);
    binding.pin = std::move(repository.pin);
    binding.repo_path = std::move(repository.repo_path);
    binding.package_name = std::move(repository.package_name);
    binding.func_name = reader.string("func_name").value_or(name);
    binding.device = read_device(reader);
    binding.mode = read_mode(reader);
    reader.finish();
    const int sources = static_cast<int>(!binding.func_impl.empty()) +
                        static_cast<int>(!binding.repo_id.empty()) +
                        static_cast<int>(!binding.repo_path.empty());
    if (sources != 1) {
        reader.fail(value, "exactly one of \"func_impl\", \"repo_id\" and \"repo_path\" is needed");
    }
    return binding;
}

}  // namespace

std::vector<FunctionBinding> read_functions(const Node& table, const DocumentPlace& place) {
    const TableReader reader(table, place.origin, "the table of functions");
    std::vector<FunctionBinding> bindings;
    for (const auto& [name, at, value] : table.members) {
        if (value.kind == Node::Kind::array) {
            for (const Node& item : value.items) {
                bindings.push_back(read_function(name, item, place));
            }
        } else {
            bindings.push_back(read_function(name, value, place));
        }
    }
    return bindings;
}

std::map<std::string, target::TargetSpec> read_targets(const Node& table,
                                                       const DocumentPlace& place) {
    const TableReader targets(table, place.origin, "the table of targets");
    std::map<std::string, target::TargetSpec> result;
    for (const auto& [name, at, value] : table.members) {
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
