// [layers]: which layer of which kernel stands for which classes of the model.

#include <charconv>

#include "base/text.h"
#include "project/attribute_table.h"
#include "project/manifest_sections.h"

namespace twinkle::project {
namespace {

using base::Node;
using base::TableReader;

std::optional<int> small_number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole && value >= 0 && value < 100000 ? std::optional(value) : std::nullopt;
}

// "80-90", or "90" for exactly that.
std::pair<int, int> parse_capability(const TableReader& reader, const Node& value) {
    const std::string text = value.kind == Node::Kind::integer
                                 ? std::to_string(value.integer)
                                 : reader.as_string(value, "capability");
    const auto dash = text.find('-');
    const auto least = small_number(text.substr(0, dash));
    const auto most = dash == std::string::npos ? least : small_number(text.substr(dash + 1));
    if (!least || !most) {
        reader.fail(value, "\"capability\" is a range of major * 10 + minor, as in \"80-90\"");
    }
    if (*least > *most) {
        reader.fail(value, "the range of \"capability\" is empty: " + std::to_string(*least) +
                               " is more than " + std::to_string(*most));
    }
    return {*least, *most};
}

void refuse_empty(TableReader& reader, std::string_view key) {
    const Node* list = reader.find(key);
    if (list != nullptr && list->items.empty()) {
        reader.fail(*list, "\"" + std::string(key) + "\" is empty: nothing would be bound");
    }
}

LayerBinding read_binding(const std::string& kernel_name, const Node& value,
                          const DocumentPlace& place) {
    TableReader reader(value, place.origin, "the layer \"" + base::printable(kernel_name) + "\"");
    LayerBinding binding;
    binding.kernel_name = kernel_name;
    binding.where = reader.where(value);
    RepositoryKeys repository = read_repository(reader, place);
    binding.repo_id = std::move(repository.repo_id);
    binding.pin = std::move(repository.pin);
    binding.repo_path = std::move(repository.repo_path);
    binding.package_name = std::move(repository.package_name);
    binding.layer_name = reader.string("layer_name").value_or(kernel_name);
    binding.device = read_device(reader);
    binding.mode = read_mode(reader);
    if (const Node* range = reader.find("capability")) {
        binding.capability = parse_capability(reader, *range);
        if (!binding.device.empty() && binding.device != "cuda" && binding.device != "rocm") {
            reader.fail(*range, "\"capability\" is for cuda and rocm, not for " + binding.device);
        }
    }
    binding.classes = reader.strings("classes");
    binding.modules = reader.strings("modules");
    refuse_empty(reader, "classes");
    refuse_empty(reader, "modules");
    binding.when = read_attributes(reader, "when");
    binding.when_submodule = read_string_lists(reader, "when_submodule");
    binding.attributes = read_attributes(reader, "attributes");
    reader.finish();
    return binding;
}

}  // namespace

std::vector<LayerBinding> read_layer_bindings(const Node& table, const DocumentPlace& place) {
    const TableReader reader(table, place.origin, "the table of layers");
    std::vector<LayerBinding> bindings;
    for (const auto& [name, at, value] : table.members) {
        if (value.kind == Node::Kind::array) {
            for (const Node& item : value.items) {
                bindings.push_back(read_binding(name, item, place));
            }
        } else {
            bindings.push_back(read_binding(name, value, place));
        }
    }
    return bindings;
}

}  // namespace twinkle::project
