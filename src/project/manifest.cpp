#include "project/manifest.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "project/document_file.h"
#include "project/manifest_sections.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

using base::Node;
using base::TableReader;

bool same_binding(const LayerBinding& a, const LayerBinding& b) {
    return a.kernel_name == b.kernel_name && a.device == b.device && a.mode == b.mode &&
           a.capability == b.capability && a.classes == b.classes && a.modules == b.modules &&
           a.when == b.when && a.when_submodule == b.when_submodule;
}

bool same_binding(const FunctionBinding& a, const FunctionBinding& b) {
    return a.name == b.name && a.target_module == b.target_module && a.device == b.device &&
           a.mode == b.mode;
}

// Bindings of the same with other kernels are its candidates, in this order.
bool same_kernel(const LayerBinding& a, const LayerBinding& b) {
    return a.repo_id == b.repo_id && a.pin == b.pin && a.repo_path == b.repo_path &&
           a.package_name == b.package_name && a.package_file == b.package_file &&
           a.layer_name == b.layer_name;
}

bool same_kernel(const FunctionBinding& a, const FunctionBinding& b) {
    return a.func_impl == b.func_impl && a.repo_id == b.repo_id && a.pin == b.pin &&
           a.repo_path == b.repo_path && a.package_name == b.package_name &&
           a.package_file == b.package_file && a.func_name == b.func_name;
}

std::vector<std::string> preset_names(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().extension() == ".toml") {
            names.push_back(entry->path().stem().string());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

// Reads a manifest and all that it includes into one. What comes first wins: the document itself,
// then its includes, then its presets.
class ManifestReader {
public:
    explicit ManifestReader(fs::path presets) : presets_(std::move(presets)) {}

    void read_file(const fs::path& file, std::string_view what) {
        std::error_code error;
        fs::path real = fs::weakly_canonical(file, error);
        if (std::find(open_.begin(), open_.end(), real) != open_.end()) {
            throw Error(ErrorCode::malformed, {.what = "a manifest includes itself",
                                               .where = base::display_path(file),
                                               .why = "",
                                               .hint = "remove the include"});
        }
        open_.push_back(std::move(real));
        const Node root = read_document_file(file, what);
        const DocumentPlace place{base::display_path(file), fs::absolute(file).parent_path()};
        if (file.filename() == "pyproject.toml") {
            read_pyproject(root, place);
        } else {
            read_document(root, place);
        }
        open_.pop_back();
    }

    void read_preset(const std::string& name, const std::string& where) {
        const fs::path file = presets_ / (name + ".toml");
        const auto names = preset_names(presets_);
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            const std::string near = base::suggestion(name, names);
            throw Error(ErrorCode::not_found,
                        {.what = "no preset \"" + base::printable(name) + "\"",
                         .where = where,
                         .why = names.empty()
                                    ? "no presets are installed in " + base::display_path(presets_)
                                    : "there are: " + base::join(names, ", "),
                         .hint = near});
        }
        const std::size_t before = manifest.layers.size();
        const std::size_t patterns_before = manifest.patterns.size();
        read_file(file, "preset");
        for (std::size_t i = before; i < manifest.layers.size(); ++i) {
            manifest.layers[i].preset = true;
        }
        for (std::size_t i = patterns_before; i < manifest.patterns.size(); ++i) {
            manifest.patterns[i].preset = true;
        }
    }

    Manifest manifest;

private:
    void read_pyproject(const Node& root, const DocumentPlace& place) {
        const Node* tool = root.find("tool");
        const Node* kernels = tool != nullptr ? tool->find("kernels") : nullptr;
        if (const Node* table = kernels != nullptr ? kernels->find("dependencies") : nullptr) {
            add_kernels(*table, place);
        }
        if (const Node* table = tool != nullptr ? tool->find("twinkle") : nullptr) {
            read_document(*table, place);
        }
    }

    void read_document(const Node& root, const DocumentPlace& place) {
        TableReader reader(root, place.origin, "the manifest");
        const std::vector<std::string> trust = reader.strings("trust");
        manifest.trust.insert(manifest.trust.end(), trust.begin(), trust.end());
        read_signature(reader, place);
        if (const Node* table = reader.find("kernels")) {
            add_kernels(*table, place);
        }
        if (const Node* table = reader.find("layers")) {
            add_layers(read_layer_bindings(*table, place));
        }
        if (const Node* table = reader.find("functions")) {
            add_functions(read_functions(*table, place));
        }
        if (const Node* table = reader.find("patterns")) {
            auto patterns = read_patterns(*table, place);
            std::move(patterns.begin(), patterns.end(), std::back_inserter(manifest.patterns));
        }
        if (const Node* table = reader.find("targets")) {
            manifest.targets.merge(read_targets(*table, place));
        }
        const Node* includes = reader.find("include");
        const Node* presets = reader.find("presets");
        reader.finish();
        if (includes != nullptr) {
            for (const std::string& file : reader.as_strings(*includes, "include")) {
                read_file(place.folder / file, "included file");
            }
        }
        if (presets != nullptr) {
            for (const std::string& name : reader.as_strings(*presets, "presets")) {
                read_preset(name, reader.where(*presets));
            }
        }
    }

    // What the manifest itself says counts before what it includes.
    void read_signature(TableReader& reader, const DocumentPlace& place) {
        if (const Node* value = reader.find("signature")) {
            const auto policy =
                kernel::parse_signature_policy(reader.as_string(*value, "signature"));
            if (!policy) {
                reader.fail(*value, "\"signature\" is \"require\", \"warn\" or \"off\"");
            }
            manifest.signature = manifest.signature ? manifest.signature : policy;
        }
        if (const auto root = reader.string("trusted_root");
            root && manifest.trusted_root.empty()) {
            manifest.trusted_root = (place.folder / *root).lexically_normal();
        }
    }

    void add_kernels(const Node& table, const DocumentPlace& place) {
        for (KernelRequest& request : read_kernels(table, place)) {
            const auto same = [&](const KernelRequest& other) {
                return other.key == request.key && other.pin == request.pin;
            };
            if (std::none_of(manifest.kernels.begin(), manifest.kernels.end(), same)) {
                manifest.kernels.push_back(std::move(request));
            }
        }
    }

    void add_layers(std::vector<LayerBinding> bindings) {
        add(manifest.layers, std::move(bindings), [](const LayerBinding& binding) {
            return "the layer \"" + base::printable(binding.kernel_name) +
                   "\" is bound to the same kernel twice, for the same classes, device and mode";
        });
    }

    void add_functions(std::vector<FunctionBinding> bindings) {
        add(manifest.functions, std::move(bindings), [](const FunctionBinding& binding) {
            return "the function \"" + base::printable(binding.name) +
                   "\" is bound to the same kernel twice, for the same module, device and mode";
        });
    }

    // One document may bind the same to a kernel once only; what an earlier one has bound stays.
    template <typename Binding, typename Words>
    static void add(std::vector<Binding>& all, std::vector<Binding> bindings, const Words& twice) {
        for (std::size_t i = 0; i < bindings.size(); ++i) {
            for (std::size_t k = 0; k < i; ++k) {
                if (same_binding(bindings[i], bindings[k]) &&
                    same_kernel(bindings[i], bindings[k])) {
                    throw Error(ErrorCode::malformed,
                                {.what = twice(bindings[i]),
                                 .where = bindings[i].where,
                                 .why = "the first binding is at " + bindings[k].where,
                                 .hint = "remove one of them"});
                }
            }
        }
        const auto earlier = static_cast<std::ptrdiff_t>(all.size());
        for (Binding& binding : bindings) {
            const auto same = [&](const Binding& other) { return same_binding(other, binding); };
            if (std::none_of(all.begin(), all.begin() + earlier, same)) {
                all.push_back(std::move(binding));
            }
        }
    }

    fs::path presets_;
    std::vector<fs::path> open_;  // the document being read, and those that include it
};

}  // namespace

Manifest load_manifest(const fs::path& file, const fs::path& presets) {
    ManifestReader reader(presets);
    reader.read_file(file, "manifest");
    reader.manifest.file = file;
    return std::move(reader.manifest);
}

Manifest default_manifest(const fs::path& presets) {
    ManifestReader reader(presets);
    for (const char* name : {"transformers", "linear", "convolutions", "patterns"}) {
        reader.read_preset(name, "");
    }
    return std::move(reader.manifest);
}

std::vector<LayerBinding> all_preset_layers(const fs::path& presets) {
    ManifestReader reader(presets);
    for (const std::string& name : preset_names(presets)) {
        reader.read_preset(name, "");
    }
    return std::move(reader.manifest.layers);
}

}  // namespace twinkle::project
