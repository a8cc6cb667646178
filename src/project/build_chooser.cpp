#include "project/build_chooser.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "kernel/variant.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

using kernel::VariantChoice;

Decision decide(const KernelSource& source, const std::string& device,
                const std::vector<VariantChoice>& choices) {
    Decision decision{"build of " + source.name + " for " + device,
                      std::nullopt,
                      "no build runs on the target",
                      {}};
    for (const VariantChoice& choice : choices) {
        if (choice.preferred) {
            decision.chosen = choice.name;
            decision.because = choice.reason;
        } else if (choice.accepted) {
            decision.rejected.push_back({choice.name, "it would run, but another is preferred"});
        } else {
            decision.rejected.push_back({choice.name, choice.reason});
        }
    }
    return decision;
}

// A build that should be the best one must not be passed over because its metadata is broken.
void refuse_broken(const KernelSource& source, const std::vector<VariantChoice>& choices) {
    for (const VariantChoice& choice : choices) {
        if (choice.broken) {
            throw Error(ErrorCode::malformed, {.what = "a build of " + source.name + " is broken",
                                               .where = base::display_path(source.folder),
                                               .why = choice.name + ": " + choice.reason,
                                               .hint = "get the kernel again"});
        }
    }
}

bool has_library(const kernel::Build& build) {
    return std::any_of(build.files.begin(), build.files.end(),
                       [](const MappedFile& file) { return file.path.ends_with(".so"); });
}

}  // namespace

fs::path BuildChooser::folder_of(const KernelSource& source, const VariantChoice& choice) const {
    const kernel::KernelFolder folder = kernel::open_kernel_folder(source.folder);
    return folder.kind == kernel::FolderKind::repository ? folder.builds / choice.name
                                                         : source.folder;
}

const BuildChooser::Loaded& BuildChooser::load(const fs::path& folder, const std::string& name) {
    if (const auto found = loaded_.find(folder); found != loaded_.end()) {
        return found->second;
    }
    Loaded loaded{kernel::read_build(folder), {}};
    loaded.layers = kernel::read_layers(loaded.build.sources);
    const auto& metadata = loaded.build.metadata;
    if (metadata && metadata->provenance && metadata->provenance->dirty()) {
        warnings_.push_back(name + " was built from a source tree with uncommitted changes");
    }
    if (metadata && !metadata->digest) {
        warnings_.push_back(name + " has no digest: its files were hashed as they are");
    }
    if (metadata && !metadata->kernel_depends.empty()) {
        warnings_.push_back(name + " depends on other kernels (" +
                            metadata->kernel_depends.front().repo_id +
                            ", …); layers that use them are kept as they are");
    }
    return loaded_.emplace(folder, std::move(loaded)).first->second;
}

const ChosenBuild* BuildChooser::choose(const KernelSource& source, const std::string& device) {
    const auto key = std::pair(source.name, device);
    if (const auto found = chosen_.find(key); found != chosen_.end()) {
        return found->second.get();
    }
    const auto choices = kernel::list_variants(source.folder, target_, device);
    refuse_broken(source, choices);
    mapping_.decisions.push_back(decide(source, device, choices));
    auto& slot = chosen_[key];
    if (choices.empty() || !choices.front().preferred) {
        return nullptr;
    }
    const VariantChoice& best = choices.front();
    const Loaded& loaded = load(folder_of(source, best), source.name);
    slot = std::make_unique<ChosenBuild>();
    slot->layers = loaded.layers;
    slot->package = base::display_path(loaded.build.package);
    MappedKernel& kernel = slot->kernel;
    kernel.name = source.name;
    kernel.repo_id = source.repo_id;
    kernel.commit = source.commit;
    kernel.device = best.device;
    kernel.path = fs::absolute(loaded.build.path).lexically_normal();
    if (loaded.build.metadata) {
        kernel.variant = best.name;
        kernel.op_namespace = has_library(loaded.build) ? loaded.build.metadata->id : "";
        kernel.archs = loaded.build.metadata->archs;
    }
    kernel.operators = loaded.build.operators;
    kernel.files = loaded.build.files;
    const auto same = [&](const MappedKernel& other) {
        return other.name == kernel.name && other.device == kernel.device;
    };
    if (std::none_of(mapping_.kernels.begin(), mapping_.kernels.end(), same)) {
        mapping_.kernels.push_back(kernel);
    }
    return slot.get();
}

void BuildChooser::fail(const KernelSource& source, const std::vector<std::string>& devices,
                        const std::string& where) const {
    std::vector<std::string> reasons;
    for (const std::string& device : devices) {
        for (const VariantChoice& choice : kernel::list_variants(source.folder, target_, device)) {
            const std::string prefix = devices.size() > 1 ? device + ": " : "";
            reasons.push_back(prefix + base::printable(choice.name) + ": " + choice.reason);
        }
    }
    throw Error(
        ErrorCode::not_found,
        {.what = "no build of " + source.name + " runs on the target (" + target_.text() + ")",
         .where = where.empty() ? base::display_path(source.folder) : where,
         .why = base::join(reasons, "\n         "),
         .hint = "twinkle versions lists them; --target chooses for another machine"});
}

}  // namespace twinkle::project
