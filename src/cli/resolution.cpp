#include "cli/resolution.h"

#include "project/find_project.h"
#include "project/manifest.h"
#include "target/runtime.h"

namespace twinkle::cli {
namespace {

std::map<std::string, target::TargetSpec> project_targets(const Console& console) {
    const auto found =
        project::find_project(console.globals().project, std::filesystem::current_path());
    if (!found) {
        return {};
    }
    const auto presets = target::installation(target::this_machine()).presets;
    return project::load_manifest(found->manifest, presets).targets;
}

}  // namespace

project::Resolution resolve_now(Console& console, const ResolveChoices& choices) {
    project::ResolveOptions options;
    options.project = console.globals().project;
    options.start = std::filesystem::current_path();
    options.target = choices.target;
    if (choices.lockfile) {
        options.lockfile = *choices.lockfile;
    }
    options.locked = choices.locked;
    options.strict = choices.strict;
    auto resolution = project::resolve(options);
    for (const auto& note : resolution.notes) {
        console.detail(note);
    }
    for (const auto& warning : resolution.warnings) {
        console.warn(warning);
    }
    for (const auto& decision : resolution.mapping.decisions) {
        console.trace(decision.what + ": " + decision.chosen.value_or("none") + ", " +
                      decision.because);
        for (const auto& [name, because] : decision.rejected) {
            console.trace("  not " + name + ": " + because);
        }
    }
    return resolution;
}

target::Target named_target(const Console& console, const std::string& text) {
    const auto& machine = target::this_machine();
    std::map<std::string, target::TargetSpec> named;
    if (text != "here" && text.find('=') == std::string::npos) {
        try {
            named = project_targets(console);
        } catch (const Error&) {
            // A mapping needs no manifest; only a name does.
            if (!std::filesystem::exists(text)) {
                throw;
            }
        }
    }
    return target::choose_target(text, named, machine, target::choose_runtime(machine));
}

}  // namespace twinkle::cli
