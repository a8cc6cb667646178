#include "operations/kernel_mapping.h"

#include <algorithm>
#include <vector>

#include "base/file.h"
#include "kernel/build.h"
#include "kernel/layers.h"
#include "kernel/versions.h"
#include "operations/inspect_kernel.h"
#include "project/find_project.h"
#include "project/function_candidates.h"
#include "project/manifest.h"
#include "target/runtime.h"
#include "target/target.h"

namespace twinkle::operations {
namespace fs = std::filesystem;
namespace {

using Warn = std::function<void(const std::string&)>;

// Layers are source, so that almost any of the builds will do, and a kernel for another machine can
// be checked here.
fs::path build_of(const fs::path& kernel) {
    if (project_package(kernel) && !fs::is_directory(kernel / "build")) {
        throw Error(ErrorCode::not_found,
                    {.what = "a source project has no layers to hold against a model",
                     .where = kernel.string(),
                     .why = "what its operators are is known when it is built",
                     .hint = "build it with kernel-builder, and check the build with --model"});
    }
    const auto folder = kernel::open_kernel_folder(kernel);
    if (folder.kind != kernel::FolderKind::repository) {
        return kernel;
    }
    const auto& machine = target::this_machine();
    const auto here = target::choose_target({}, {}, machine, target::choose_runtime(machine));
    for (const auto& device : here.devices()) {
        for (const auto& choice : kernel::list_variants(kernel, here, device)) {
            if (choice.preferred) {
                return folder.builds / choice.name;
            }
        }
    }
    if (folder.variants.empty()) {
        throw Error(
            ErrorCode::not_found,
            {.what = "the kernel has no build", .where = kernel.string(), .why = {}, .hint = {}});
    }
    return folder.builds / folder.variants.front();
}

MappedKernel mapped(const kernel::Build& build) {
    MappedKernel result;
    result.name = build.metadata ? build.metadata->name : build.path.filename().string();
    result.variant = build.metadata ? build.path.filename().string() : "";
    result.device = "any";
    result.path = base::absolute_path(build.path);
    result.op_namespace = build.metadata && build.has_code() ? build.metadata->id : "";
    result.operators = build.operators;
    result.files = build.files;
    return result;
}

struct Bindings {
    std::vector<project::LayerBinding> layers;
    std::vector<project::FunctionBinding> functions;
};

// The bindings of the project and the installed presets.
Bindings known_bindings(const std::optional<fs::path>& project, const Warn& warn) {
    const auto presets = target::installation(target::this_machine()).presets;
    Bindings known{project::all_preset_layers(presets), {}};
    try {
        if (const auto found = project::find_project(project, fs::current_path())) {
            auto own = project::load_manifest(found->manifest, presets);
            known.layers.insert(known.layers.begin(), own.layers.begin(), own.layers.end());
            known.functions = std::move(own.functions);
        }
    } catch (const Error& error) {
        const auto& [what, where, why, hint] = error.details();
        warn("the manifest's bindings are not checked: " + what +
             (where.empty() ? "" : " (" + where + ")") + (why.empty() ? "" : ": " + why));
    }
    return known;
}

// The bindings of functions that name a function or layer of this kernel's package, or one of its
// operators.
std::vector<MappedFunction> functions_of(const kernel::Build& build, const MappedKernel& kernel,
                                         const std::vector<project::FunctionBinding>& bindings) {
    const auto offered = kernel::read_functions(build.sources).functions;
    std::vector<MappedFunction> result;
    for (const auto& binding : bindings) {
        FunctionCandidate one;
        one.kernel = kernel.name;
        one.device = "any";
        one.mode = "fallback";
        one.can_torch_compile = true;
        const auto colons = binding.op.find("::");
        const auto has = [&](const auto& list, const std::string& name) {
            return std::any_of(list.begin(), list.end(), [&](const auto& other) {
                return other.name.substr(0, other.name.find('.')) == name;
            });
        };
        if (!binding.op.empty() &&
            project::names_kernel(binding.op.substr(0, colons), kernel.name) &&
            has(kernel.operators, binding.op.substr(colons + 2))) {
            one.op = kernel.op_namespace + "::" + binding.op.substr(colons + 2);
        } else if (binding.func_impl.empty() && has(offered, binding.func_name)) {
            one.function = binding.func_name;
        } else {
            continue;
        }
        result.push_back({binding.target_module, binding.name, {std::move(one)}});
    }
    return result;
}

std::vector<MappedLayer> layers_of(const kernel::LayerSource& source, const std::string& kernel,
                                   const std::vector<project::LayerBinding>& bindings) {
    MappedLayer bare;
    bare.kernel_name = source.name;
    bare.candidates = {{.kernel = kernel,
                        .layer = source.name,
                        .device = "any",
                        .capability = {},
                        .mode = "fallback",
                        .has_backward = source.has_backward,
                        .can_torch_compile = source.can_torch_compile}};
    std::vector<MappedLayer> result;
    for (const auto& binding : bindings) {
        if (binding.layer_name == source.name && !binding.classes.empty()) {
            MappedLayer layer = bare;
            layer.classes = binding.classes;
            layer.modules = binding.modules;
            layer.when = binding.when;
            layer.when_submodule = binding.when_submodule;
            layer.attributes = binding.attributes;
            result.push_back(std::move(layer));
        }
    }
    if (result.empty()) {
        bare.classes = {source.name};  // the worker looks for classes with this name
        result.push_back(std::move(bare));
    }
    return result;
}

}  // namespace

Mapping kernel_mapping(const fs::path& kernel, const std::optional<fs::path>& project,
                       const Warn& warn) {
    const auto build = kernel::read_build(build_of(kernel));
    const auto bindings = known_bindings(project, warn);
    Mapping mapping;
    mapping.kernels.push_back(mapped(build));
    for (const auto& source : kernel::read_layers(build.sources).layers) {
        auto layers = layers_of(source, mapping.kernels.front().name, bindings.layers);
        mapping.layers.insert(mapping.layers.end(), layers.begin(), layers.end());
    }
    mapping.functions = functions_of(build, mapping.kernels.front(), bindings.functions);
    return mapping;
}

}  // namespace twinkle::operations
