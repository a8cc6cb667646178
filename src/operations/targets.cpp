#include "operations/targets.h"

#include <algorithm>

#include "base/text.h"
#include "kernel/versions.h"
#include "operations/versions.h"
#include "target/runtime.h"
#include "twinkle/error.h"

namespace twinkle::operations {
namespace {

// Ranks for one device, as resolve will ask: a build for every backend serves each of them.
std::vector<kernel::VariantChoice> rank(const project::LockedKernel& kernel,
                                        const target::Target& target, const std::string& device) {
    std::vector<kernel::OfferedVariant> offered;
    for (const auto& variant : kernel.variants) {
        offered.push_back({variant.name, [&variant] { return variant.archs; }});
    }
    return kernel::rank_variants(offered, target, device);
}

// A version that would do: worth one more question where there is nothing to lose.
std::string hint_for(Context& context, const project::LockedKernel& kernel,
                     const target::Target& target) {
    std::string usual = "twinkle versions " + kernel.home() + " shows the other versions";
    try {
        const auto found =
            fitting_version_hint(list_versions(context, {kernel.home(), {}}, target));
        return found.empty() ? usual : found;
    } catch (const Error& error) {
        if (error.code() == ErrorCode::interrupted) {
            throw;
        }
        return usual;
    }
}

[[noreturn]] void no_build(Context& context, const project::LockedKernel& kernel,
                           const target::Target& target,
                           const std::vector<kernel::VariantChoice>& choices) {
    std::vector<std::string> reasons;
    for (const auto& choice : choices) {
        reasons.push_back(choice.name + ": " + choice.reason);
    }
    throw Error(ErrorCode::not_found, {.what = "no build of " + kernel.text() + " fits the target",
                                       .where = target.text(),
                                       .why = base::join(reasons, "; "),
                                       .hint = hint_for(context, kernel, target)});
}

}  // namespace

std::vector<target::Target> choose_targets(const Context& context, const Project* project,
                                           std::span<const std::string> texts) {
    const auto runtime = target::choose_runtime(context.machine());
    const auto named = project != nullptr ? project->manifest.targets
                                          : std::map<std::string, target::TargetSpec>{};
    std::vector<target::Target> targets;
    for (const auto& text : texts) {
        targets.push_back(target::choose_target(text, named, context.machine(), runtime));
    }
    if (targets.empty()) {
        targets.push_back(target::choose_target(std::nullopt, named, context.machine(), runtime));
    }
    for (const auto& target : targets) {
        context.listener().detail("target: " + target.text());
    }
    return targets;
}

std::vector<std::string> builds_for(Context& context, const project::LockedKernel& kernel,
                                    std::span<const target::Target> targets) {
    std::vector<std::string> names;
    for (const auto& target : targets) {
        bool fits = false;
        for (const auto& device : target.devices()) {
            const auto choices = rank(kernel, target, device);
            if (!choices.empty() && choices.front().preferred) {
                fits = true;
                names.push_back(choices.front().name);
            }
        }
        if (!fits) {
            no_build(context, kernel, target, rank(kernel, target, target.backend.device()));
        }
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

}  // namespace twinkle::operations
