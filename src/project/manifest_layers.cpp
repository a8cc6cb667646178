// [layers]: which layer of which kernel stands for which classes of the model.

#include <algorithm>
#include <map>

#include "base/number.h"
#include "base/text.h"
#include "project/attribute_table.h"
#include "project/manifest_sections.h"
#include "twinkle/error.h"

namespace twinkle::project {
namespace {

using base::Node;
using base::TableReader;

std::optional<int> small_number(std::string_view text) {
    const auto value = base::parse_number<int>(text);
    return value && *value >= 0 && *value < 100000 ? value : std::nullopt;
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

// Of a layer, "func_impl" names a package alone: Python files and operators have no attributes.
void read_package(TableReader& reader, const Node& impl, const DocumentPlace& place,
                  LayerBinding& binding) {
    if (!binding.repo_id.empty() || !binding.repo_path.empty()) {
        reader.fail(impl, "\"func_impl\" and a repository are both given", "keep one of them");
    }
    if (!set_package(binding, reader.as_string(impl, "func_impl"), place.folder)) {
        reader.fail(impl, "\"func_impl\" of a layer is \"package:file.pt2\"",
                    "a layer in Python is in the layers.py of a \"repo_path\"");
    }
}

LayerBinding read_binding(const std::string& kernel_name, const Node& value,
                          const DocumentPlace& place) {
    TableReader reader(value, place.origin, "the layer \"" + base::printable(kernel_name) + "\"");
    LayerBinding binding;
    binding.kernel_name = kernel_name;
    binding.where = reader.where(value);
    read_repository(reader, place, binding);
    if (const Node* impl = reader.find("func_impl")) {
        read_package(reader, *impl, place, binding);
    }
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

// What holds of every instance that `wanted` asks for, holds of those that `given` asks for too.
template <class Condition>
bool implies(const std::map<std::string, Condition>& given,
             const std::map<std::string, Condition>& wanted, const auto& covers) {
    return std::all_of(wanted.begin(), wanted.end(), [&](const auto& one) {
        const auto same = given.find(one.first);
        return same != given.end() && covers(same->second, one.second);
    });
}

// The first class that both name.
std::optional<std::string> shared_class(const LayerBinding& first, const LayerBinding& second) {
    for (const std::string& name : second.classes) {
        for (const std::string& pattern : first.classes) {
            if (pattern == name ||
                (name.find('*') == std::string::npos && base::glob_match(pattern, name))) {
                return name;
            }
        }
    }
    return std::nullopt;
}

// Of several bindings of a class the first whose conditions hold counts. Where those of an earlier
// one hold whenever the later one's do, the later one would never be used for that class.
bool takes_all_of(const LayerBinding& earlier, const LayerBinding& later) {
    const auto equal = [](const auto& a, const auto& b) { return a == b; };
    const auto within = [](const auto& some, const auto& all) {
        return std::all_of(some.begin(), some.end(), [&](const std::string& one) {
            return std::find(all.begin(), all.end(), one) != all.end();
        });
    };
    return earlier.device == later.device && earlier.mode == later.mode &&
           earlier.capability == later.capability &&
           (earlier.modules.empty() || earlier.modules == later.modules) &&
           implies(later.when, earlier.when, equal) &&
           implies(later.when_submodule, earlier.when_submodule, within);
}

void refuse_unreachable(const std::vector<LayerBinding>& bindings) {
    for (std::size_t later = 1; later < bindings.size(); ++later) {
        for (std::size_t earlier = 0; earlier < later; ++earlier) {
            if (bindings[earlier].kernel_name == bindings[later].kernel_name ||
                !takes_all_of(bindings[earlier], bindings[later])) {
                continue;
            }
            if (const auto both = shared_class(bindings[earlier], bindings[later])) {
                throw Error(ErrorCode::malformed,
                            {.what = "two layers are bound to " + base::printable(*both) +
                                     ", and nothing tells them apart",
                             .where = bindings[later].where,
                             .why = "\"" + base::printable(bindings[earlier].kernel_name) +
                                    "\" at " + bindings[earlier].where + " takes all of it",
                             .hint = "give them different conditions: when, when_submodule, "
                                     "modules, device or mode; the one with more comes first"});
            }
        }
    }
}

}  // namespace

std::vector<LayerBinding> read_layer_bindings(const Node& table, const DocumentPlace& place) {
    const TableReader reader(table, place.origin, "the table of layers");
    std::vector<LayerBinding> bindings = read_bindings(table, place, read_binding);
    refuse_unreachable(bindings);
    return bindings;
}

}  // namespace twinkle::project
