#include "cli/resolution.h"

#include "base/file.h"
#include "cli/library_operators.h"
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

bool may_be_file(const std::string& target) {
    return target != "here" && target.find('=') == std::string::npos;
}

// The project's targets that this --target could name.
std::map<std::string, target::TargetSpec> named_targets(const Console& console,
                                                        const std::string& text) {
    if (!may_be_file(text)) {
        return {};
    }
    try {
        return project_targets(console);
    } catch (const Error&) {
        // Only a name needs the manifest, a file does not.
        if (!std::filesystem::exists(text)) {
            throw;
        }
        return {};
    }
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
    options.lock = choices.lock;
    options.strict = choices.strict;
    options.ask_operators = operators_by_loading(console);
    console.progress().show("choosing kernels");  // hashes their files
    auto resolution = project::resolve(options);
    console.progress().clear();
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

std::optional<std::filesystem::path> target_file(const Console& console, const std::string& text) {
    const bool named = !may_be_file(text) || named_targets(console, text).contains(text);
    return named || !std::filesystem::exists(text) ? std::nullopt
                                                   : std::optional(base::absolute_path(text));
}

target::Target named_target(const Console& console, const std::string& text) {
    const auto& machine = target::this_machine();
    return target::choose_target(text, named_targets(console, text), machine,
                                 target::choose_runtime(machine));
}

}  // namespace twinkle::cli
