#include "cli/resolution.h"

namespace twinkle::cli {

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

}  // namespace twinkle::cli
