#include "project/resolver.h"

#include "base/file.h"
#include "base/text.h"
#include "kernel/archs.h"
#include "project/build_chooser.h"
#include "project/find_project.h"
#include "project/function_candidates.h"
#include "project/kernel_locator.h"
#include "project/layer_candidates.h"
#include "project/manifest.h"
#include "project/signatures.h"
#include "target/runtime.h"
#include "target/target.h"

namespace twinkle::project {
namespace {

void add_kernels(const Manifest& manifest, const target::Target& target, KernelLocator& locator,
                 BuildChooser& chooser) {
    for (const KernelRequest& request : manifest.kernels) {
        const KernelSource source = locator.locate(request);
        bool fits = false;
        for (const std::string& device : target.devices()) {
            fits = chooser.choose(source, device) != nullptr || fits;
        }
        if (!fits) {
            chooser.fail(source, target.devices(), request.where);
        }
    }
}

// The project's lock, if it has one; what does not fit the manifest is said, or refused.
std::optional<Lock> use_lock(const ResolveOptions& options, const Manifest& manifest,
                             Resolution& resolution) {
    auto [lock, misfit] =
        checked_lock(manifest, lock_files(manifest, options.lockfile), options.lock);
    if (lock) {
        resolution.notes.push_back("lock: " + base::display_path(lock->file));
    }
    if (!misfit.empty()) {
        resolution.warnings.push_back(std::move(misfit));
    }
    return std::move(lock);
}

std::string quoted(const std::string& word) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n\"'\\$`<>|&;*?()[]{}~#!") == std::string::npos;
    std::string text = "'";
    for (const char c : word) {
        text += c == '\'' ? "'\\''" : std::string(1, c);
    }
    return plain ? word : text + "'";
}

// What a person has to type to get what this resolution needs.
std::string fetch_command(const ResolveOptions& options) {
    std::string command = "twinkle fetch";
    const auto add = [&](const char* option, const std::optional<std::string>& value) {
        command += value ? std::string(" ") + option + " " + quoted(*value) : "";
    };
    const auto text = [](const std::optional<std::filesystem::path>& path) {
        return path ? std::optional(path->string()) : std::nullopt;
    };
    add("--project", text(options.project));
    add("--lockfile", text(options.lockfile));
    add("--target", options.target);
    return command;
}

// Checks only where the manifest says what it wants: whoever fetched the kernels was told already.
void check_signatures(const Manifest& manifest, Resolution& resolution) {
    const SignatureRules rules({}, &manifest, kernel::SignaturePolicy::off);
    if (!rules.wanted()) {
        return;
    }
    for (const MappedKernel& kernel : resolution.mapping.kernels) {
        if (!kernel.repo_id.empty()) {
            rules.check(kernel.path, kernel.name, kernel.repo_id, resolution.warnings);
        }
    }
}

// One build is chosen, by the first GPU; others of this machine may be of another kind.
void check_other_gpus(const target::Machine& machine, Resolution& resolution) {
    const auto driver = machine.may_have_cuda() ? machine.cuda_driver() : std::nullopt;
    for (std::size_t i = 1; driver && i < driver->gpus.size(); ++i) {
        const target::Gpu& gpu = driver->gpus[i];
        for (const MappedKernel& kernel : resolution.mapping.kernels) {
            if (kernel.device == "cuda" && !kernel.archs.empty() &&
                !kernel::archs_support(kernel.archs, target::BackendKind::cuda, gpu.arch)) {
                resolution.warnings.push_back(kernel.name + " has no code for GPU " +
                                              std::to_string(i) + ", " + base::printable(gpu.name) +
                                              " (" + gpu.arch + "), only for " +
                                              base::join(kernel.archs, ", "));
            }
        }
    }
}

// Whoever names a machine with a GPU means it, and may well have kernels for that alone.
void check_gpu(const target::Target& target, const BuildChooser& chooser, Resolution& resolution) {
    const std::string device = target.backend.device();
    if (device == "cpu") {
        return;
    }
    for (const std::string& kernel : chooser.without_build(device)) {
        resolution.warnings.push_back(
            "no build of " + kernel + " for " + device + " runs on the target (" + target.text() +
            "): models on " + device +
            " keep what is bound to it; a binding with device = \"cpu\" is for the CPU alone");
    }
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Resolution resolve(const ResolveOptions& options) {
    const target::Machine& machine =
        options.machine != nullptr ? *options.machine : target::this_machine();
    const target::Installation installed = target::installation(machine);
    const auto presets = options.presets_dir.value_or(installed.presets);

    Resolution resolution;
    const auto project = find_project(options.project, options.start);
    const Manifest manifest =
        project ? load_manifest(project->manifest, presets) : default_manifest(presets);
    if (project) {
        resolution.manifest = project->manifest;
        resolution.notes.push_back("manifest: " + base::display_path(project->manifest));
        if (!project->note.empty()) {
            resolution.warnings.push_back(project->note);
        }
    } else {
        resolution.notes.push_back("no manifest: the bundled kernels with their presets");
    }
    const auto runtime = target::choose_runtime(machine);
    const target::Target target =
        target::choose_target(options.target, manifest.targets, machine, runtime);
    resolution.notes.push_back("target: " + target.text());

    resolution.mapping.target = target.to_map();
    const auto lock = project ? use_lock(options, manifest, resolution) : std::optional<Lock>();
    const LocatorOptions where{options.kernels_dir.value_or(installed.kernels),
                               lock ? &*lock : nullptr, fetch_command(options)};
    KernelLocator locator(manifest, where, machine);
    BuildChooser chooser(target, locator, resolution.mapping);
    chooser.set_operator_source(options.ask_operators);
    if (!options.target || *options.target == "here") {
        chooser.set_cpu_features(machine.cpu().features);
    }
    add_kernels(manifest, target, locator, chooser);
    const LayerRules rules{target, presets, options.strict};
    add_layers(manifest, rules, locator, chooser, resolution.mapping);
    add_functions(manifest, rules, locator, chooser, resolution.mapping);
    check_signatures(manifest, resolution);
    if (!options.target || *options.target == "here") {
        check_other_gpus(machine, resolution);
    } else {
        check_gpu(target, chooser, resolution);
    }
    append(resolution.warnings, locator.warnings());
    append(resolution.warnings, chooser.warnings());
    return resolution;
}

}  // namespace twinkle::project
