#include "runtime/registry/registered_kernels.h"

#include "kernel/build_memory.h"
#include "project/function_candidates.h"
#include "project/layer_candidates.h"
#include "project/manifest_sections.h"
#include "project/requests.h"
#include "runtime/kernels/own_place.h"
#include "runtime/kernels/own_target.h"
#include "target/machine.h"

#include <algorithm>

namespace twinkle::runtime {

namespace fs = std::filesystem;

namespace {

// Models name their kernels, and hold no paths: a folder goes by its own name, with a number if
// several have it.
void name_folder(project::Manifest& manifest, const fs::path& folder) {
    auto& kernels = manifest.kernels;
    const auto known = [&](const auto& test) {
        return std::any_of(kernels.begin(), kernels.end(), test);
    };
    if (known([&](const auto& one) { return one.path == folder; })) {
        return;
    }
    const std::string base = folder.has_filename() ? folder.filename().string()
                                                   : folder.parent_path().filename().string();
    std::string name = base;
    for (int i = 2; known([&](const auto& one) { return one.key == name; }); ++i) {
        name = base + "-" + std::to_string(i);
    }
    kernels.push_back({name, {}, folder, "the registered folder " + name});
}

// Sets where a layer or function comes from, and for what.
template <typename Binding, typename Kernel>
void set_source(Binding& binding, const Kernel& kernel) {
    binding.repo_id = kernel.repo_id;
    binding.pin = project::pin_of(kernel.version, kernel.revision);
    binding.repo_path = kernel.repo_path;
    binding.package_name = kernel.package_name;
    binding.device = kernel.device;
    binding.mode = kernel.mode;
}

project::LayerBinding binding_of(const LayerKernel& layer,
                                 const std::vector<std::string>& classes) {
    project::LayerBinding binding;
    binding.kernel_name = layer.kernel_name;
    set_source(binding, layer);
    binding.layer_name = layer.layer_name;
    binding.capability = layer.capability;
    binding.classes = classes;
    binding.where = "the registered layer " + layer.kernel_name;
    return binding;
}

project::FunctionBinding binding_of(const FunctionKernel& function) {
    project::FunctionBinding binding;
    binding.name = function.func_name;
    binding.target_module = function.target_module;
    if (!function.func_impl.text().empty()) {
        project::set_implementation(binding, function.func_impl.text(), fs::current_path());
    }
    set_source(binding, function);
    binding.func_name =
        function.kernel_func_name.empty() ? function.func_name : function.kernel_func_name;
    binding.where = "the registered function " + function.target_module + "." + function.func_name;
    return binding;
}

project::Download download_of(const Registrations& registrations) {
    if (!registrations.hub.get) {
        return {};
    }
    return [&registrations](const std::string& repo_id, const project::Pin& pin) {
        WantedKernel wanted{.repo_id = repo_id, .revision = pin.revision};
        wanted.target = own_target().text();
        wanted.user_agent = registrations.user_agent;
        wanted.trust = registrations.trust;
        if (pin.version) {
            wanted.version = *pin.version;
        } else if (!pin.specifier.empty()) {
            wanted.version = pin.specifier;
        }
        const FoundKernel found = registrations.hub.get(wanted);
        // …/snapshots/<commit>/build/<variant>
        return cache::Snapshot{found.commit, found.folder.parent_path().parent_path()};
    };
}

// Cached: programs may kernelize often, each time with the same kernels.
kernel::Build read_build(const fs::path& folder) {
    static auto& memory = *new kernel::BuildMemory();
    return memory.read(folder);
}

}  // namespace

RegisteredKernels::RegisteredKernels(const Registrations& registrations, Mapping& mapping)
    : registrations_(registrations), mapping_(mapping) {
    manifest_.trust = registrations.trust;
    for (const auto& [layer, call] : registrations.layers) {
        if (!layer.repo_path.empty()) {
            name_folder(manifest_, project::local_folder(layer.repo_path, layer.package_name));
        }
    }
    const auto name = [&](const FunctionKernel& function) {
        if (!function.repo_path.empty()) {
            name_folder(manifest_,
                        project::local_folder(function.repo_path, function.package_name));
        }
    };
    for (const RegisteredFunction& function : registrations.functions) {
        name(function.kernel);
    }
    for (const RegisteredPattern& pattern : registrations.patterns) {
        name(pattern.replacement.kernel);
    }
}

RegisteredKernels::Place& RegisteredKernels::place_of(const fs::path& lockfile) {
    const auto [found, fresh] = places_.try_emplace(lockfile);
    Place& place = found->second;
    if (fresh) {
        if (!lockfile.empty()) {
            place.lock = std::make_unique<project::Lock>(project::read_lock(lockfile));
        }
        place.locator = std::make_unique<project::KernelLocator>(
            manifest_,
            project::LocatorOptions{bundled_kernels(), place.lock.get(), "twinkle fetch",
                                    download_of(registrations_)},
            target::this_machine());
        place.chooser = std::make_unique<project::BuildChooser>(own_target(), *place.locator,
                                                                mapping_, read_build);
        place.chooser->set_cpu_features(target::this_machine().cpu().features);
    }
    return place;
}

template <typename Kernel>
RegisteredKernels::Place& RegisteredKernels::place_for(const Kernel& kernel) {
    const bool of_hub = !kernel.repo_id.empty();
    return place_of(!of_hub                   ? fs::path()
                    : kernel.lockfile.empty() ? registrations_.lock
                                              : kernel.lockfile);
}

std::vector<FunctionCandidate> RegisteredKernels::candidates(const FunctionKernel& function,
                                                             const std::string& mode) {
    Place& place = place_for(function);
    project::Manifest one = manifest_;
    one.functions = {binding_of(function)};
    const project::LayerRules rules{own_target(), {}, false, mode};
    Mapping made;
    project::add_functions(one, rules, *place.locator, *place.chooser, made);
    std::move(made.decisions.begin(), made.decisions.end(), std::back_inserter(mapping_.decisions));
    return made.functions.front().candidates;
}

std::vector<LayerCandidate> RegisteredKernels::candidates(const LayerKernel& layer,
                                                          const std::vector<std::string>& classes,
                                                          const std::string& mode) {
    Place& place = place_for(layer);
    project::Manifest one = manifest_;
    one.layers = {binding_of(layer, classes)};
    const project::LayerRules rules{own_target(), {}, false, mode};
    Mapping made;
    project::add_layers(one, rules, *place.locator, *place.chooser, made);
    std::move(made.decisions.begin(), made.decisions.end(), std::back_inserter(mapping_.decisions));
    return made.layers.empty() ? std::vector<LayerCandidate>{} : made.layers.front().candidates;
}

const MappedKernel& RegisteredKernels::build(const project::KernelRequest& request,
                                             const fs::path& lockfile,
                                             const std::vector<std::string>& devices) {
    Place& place = place_of(lockfile);
    const project::KernelSource source = place.locator->locate(request);
    for (const std::string& device : devices) {
        if (const auto* chosen = place.chooser->choose(source, device)) {
            return chosen->kernel;
        }
    }
    place.chooser->fail(source, devices, request.where);
}

std::vector<std::string> RegisteredKernels::warnings() const {
    std::vector<std::string> all;
    for (const auto& [lock, place] : places_) {
        if (!place.chooser) {
            continue;
        }
        const auto& located = place.locator->warnings();
        const auto& chosen = place.chooser->warnings();
        all.insert(all.end(), located.begin(), located.end());
        all.insert(all.end(), chosen.begin(), chosen.end());
    }
    return all;
}

}  // namespace twinkle::runtime
