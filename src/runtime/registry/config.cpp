// Config: the layers, functions and patterns of a manifest as registrations.

#include "project/lock_files.h"
#include "project/manifest.h"
#include "project/requests.h"
#include "runtime/kernels/own_place.h"
#include "twinkle/error.h"
#include "twinkle/registry.h"

namespace twinkle {

namespace {

using project::LayerBinding;
using project::Manifest;

// Releases and branches v<int> are versions, others are revisions.
template <typename Kernel>
void set_pin(Kernel& layer, const project::Pin& pin) {
    if (pin.version) {
        layer.version = *pin.version;
    } else if (!pin.specifier.empty()) {
        layer.version = pin.specifier;
    } else {
        layer.revision = pin.revision;
    }
}

// Sets where a layer, function or pattern comes from, and for what.
template <typename Kernel, typename Binding>
void set_source(Kernel& kernel, const Manifest& manifest, const Binding& binding) {
    kernel.repo_id = binding.repo_id;
    if (!binding.repo_id.empty()) {
        set_pin(kernel, project::pin_of(manifest, binding));
    }
    kernel.repo_path = binding.repo_path;
    kernel.package_name = binding.package_name;
    kernel.device = binding.device;
    kernel.mode = binding.mode;
}

LayerKernel layer_of(const Manifest& manifest, const LayerBinding& binding) {
    LayerKernel layer{.kernel_name = binding.kernel_name};
    set_source(layer, manifest, binding);
    layer.layer_name = binding.layer_name;
    layer.capability = binding.capability;
    layer.classes = binding.classes;
    layer.modules = binding.modules;
    layer.when = binding.when;
    layer.when_submodule = binding.when_submodule;
    layer.attributes = binding.attributes;
    return layer;
}

// Sets the replacement of a function or pattern.
template <typename Kernel>
void set_replacement(Kernel& function, const Manifest& manifest,
                     const project::FunctionBinding& binding) {
    function.func_impl =
        binding.source_file.empty()
            ? FunctionImplementation(binding.func_impl)
            : FunctionImplementation(binding.source_file.string() + ":" + binding.source_function);
    set_source(function, manifest, binding);
    function.kernel_func_name = binding.func_name;
}

FunctionKernel function_of(const Manifest& manifest, const project::FunctionBinding& binding) {
    FunctionKernel function{.func_name = binding.name, .target_module = binding.target_module};
    set_replacement(function, manifest, binding);
    return function;
}

PatternKernel pattern_of(const Manifest& manifest, const project::PatternBinding& binding) {
    PatternKernel pattern{.name = binding.replacement.name};
    for (const std::string& formula : binding.formulas) {
        pattern.pattern.push_back(binding.formula_file.string() + ":" + formula);
    }
    set_replacement(pattern, manifest, binding.replacement);
    return pattern;
}

// A manifest includes its lock; a lock made by Python's `kernels` alone is accepted.
std::filesystem::path lock_of(const Manifest& manifest) {
    const auto files = project::lock_files(manifest, std::nullopt);
    const auto lock = project::read_project_lock(files);
    return lock ? lock->file : std::filesystem::path();
}

Config config_of(const Manifest& manifest, const std::filesystem::path& lock) {
    Config config;
    config.trust = manifest.trust;
    for (const LayerBinding& binding : manifest.layers) {
        config.layers.push_back(layer_of(manifest, binding));
        if (!binding.repo_id.empty()) {
            config.layers.back().lockfile = lock;
        }
    }
    for (const project::FunctionBinding& binding : manifest.functions) {
        config.functions.push_back(function_of(manifest, binding));
        if (!binding.repo_id.empty()) {
            config.functions.back().lockfile = lock;
        }
    }
    for (const project::PatternBinding& binding : manifest.patterns) {
        config.patterns.push_back(pattern_of(manifest, binding));
        if (!binding.replacement.repo_id.empty()) {
            config.patterns.back().lockfile = lock;
        }
    }
    return config;
}

}  // namespace

Config Config::load(const std::filesystem::path& file) {
    const Manifest manifest = project::load_manifest(file, runtime::presets_folder());
    return config_of(manifest, lock_of(manifest));
}

Config Config::preset(const std::string& name) {
    const auto presets = runtime::presets_folder();
    const auto file = presets / (name + ".toml");
    std::error_code error;
    if (name.find('/') != std::string::npos || !std::filesystem::exists(file, error)) {
        throw Error(ErrorCode::not_found,
                    {.what = "there is no preset \"" + name + "\"",
                     .where = presets.string(),
                     .why = "",
                     .hint = "presets are files below share/twinkle/presets"});
    }
    return config_of(project::load_manifest(file, presets), {});
}

}  // namespace twinkle
