#include "project/resolver.h"

#include "base/file.h"
#include "project/build_chooser.h"
#include "project/find_project.h"
#include "project/kernel_locator.h"
#include "project/layer_candidates.h"
#include "project/manifest.h"
#include "target/runtime.h"
#include "target/target.h"
#include "twinkle/error.h"

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

// Functions are read, so that a manifest with them is checked; the runtime replaces layers only.
void add_functions(const Manifest& manifest, bool strict, Resolution& resolution) {
    for (const FunctionBinding& function : manifest.functions) {
        const std::string name = function.target_module + "." + function.name;
        const std::string why = "this version of twinkle replaces layers only";
        if (strict) {
            throw Error(ErrorCode::refused, {.what = "the function " + name + " cannot be replaced",
                                             .where = function.where,
                                             .why = why,
                                             .hint = "leave --strict out to go on without it"});
        }
        resolution.mapping.decisions.push_back({"function " + name, std::nullopt, why, {}});
        resolution.warnings.push_back(function.where + ": " + name + " is kept: " + why);
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
        resolution.notes.push_back("no manifest: the bundled kernels with their preset");
    }
    const auto runtime = target::choose_runtime(machine);
    const target::Target target =
        target::choose_target(options.target, manifest.targets, machine, runtime);
    resolution.notes.push_back("target: " + target.text());

    resolution.mapping.target = target.to_map();
    KernelLocator locator(manifest, options.kernels_dir.value_or(installed.kernels), machine);
    BuildChooser chooser(target, resolution.mapping);
    add_kernels(manifest, target, locator, chooser);
    const LayerRules rules{target, presets, options.strict};
    add_layers(manifest, rules, locator, chooser, resolution.mapping);
    add_functions(manifest, options.strict, resolution);
    append(resolution.warnings, locator.warnings());
    append(resolution.warnings, chooser.warnings());
    return resolution;
}

}  // namespace twinkle::project
