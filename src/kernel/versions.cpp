#include "kernel/versions.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "kernel/archs.h"
#include "kernel/build.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::kernel {
namespace {

using target::BackendKind;
using target::Target;

struct Candidate {
    VariantChoice choice;
    std::optional<Variant> variant;  // none: its folder is not named as one
};

void reject(VariantChoice& choice, std::string reason) {
    choice.accepted = false;
    choice.reason = std::move(reason);
}

// GPU code for other GPUs than the target's: known from the metadata alone.
void judge_archs(VariantChoice& choice, const ReadArchs& read, BackendKind kind,
                 const Target& target) {
    const bool has_archs = kind == BackendKind::cuda || kind == BackendKind::rocm;
    if (!choice.accepted || !has_archs || !target.arch) {
        return;
    }
    try {
        const std::vector<std::string> archs = read();
        if (!archs_support(archs, kind, *target.arch)) {
            reject(choice, "it is built for " + base::join(archs, ", ") +
                               ", the GPU of the target is " + *target.arch);
        }
    } catch (const Error& error) {
        choice.broken = true;
        reject(choice, error.details().what +
                           (error.details().why.empty() ? "" : ": " + error.details().why));
    }
}

// The device that a variant is for: that of its backend, the target's for those of every backend.
std::string device_of(const Variant& variant, const Target& target) {
    if (variant.framework != Framework::noarch) {
        return variant.backend.device();
    }
    if (variant.noarch_backend == "universal") {
        return target.backend.device();
    }
    const auto kind = variant.noarch_backend == "npu"
                          ? BackendKind::cann
                          : target::parse_backend_type(variant.noarch_backend).value();
    return target::Backend{kind, {}}.device();
}

// As the Python tools have it, a build for the CPU is none for a GPU.
void set_apart_for_cpu(VariantChoice& choice, const Target& target) {
    const std::string own = target.backend.device();
    if (choice.accepted && choice.device != own) {
        choice.accepted = false;
        choice.for_cpu = true;
        choice.reason += "; for models on the CPU, not on " + own;
    }
}

ReadArchs archs_of(const fs::path& folder) {
    return [folder] { return read_metadata(folder / "metadata.json").archs; };
}

Candidate judge(const OfferedVariant& offered, const Target& target,
                std::optional<std::string_view> device) {
    Candidate candidate;
    candidate.choice.name = offered.name;
    candidate.variant = parse_variant(offered.name);
    if (!candidate.variant) {
        candidate.choice.device = device.value_or("");
        candidate.choice.reason = "its name is not that of a build variant";
        return candidate;
    }
    const Variant& variant = *candidate.variant;
    VariantChoice& choice = candidate.choice;
    choice.device = device ? std::string(*device) : device_of(variant, target);
    Judgement judgement = judge_variant(variant, target, choice.device);
    choice.accepted = judgement.accepted;
    choice.reason = std::move(judgement.reason);
    const auto wanted = target.backend_for(choice.device);
    judge_archs(choice, offered.archs, wanted ? wanted->kind : BackendKind::cpu, target);
    if (!device) {
        set_apart_for_cpu(choice, target);
    }
    return candidate;
}

// A build outside a repository: its folder may have any name, its metadata says what it is for.
Candidate judge_single(const fs::path& folder, const Target& target,
                       std::optional<std::string_view> device) {
    const std::string name = base::absolute_path(folder).filename().string();
    const std::string plain = name.empty() ? folder.parent_path().filename().string() : name;
    if (parse_variant(plain)) {
        return judge({plain, archs_of(folder)}, target, device);
    }
    const Metadata metadata = read_metadata(folder / "metadata.json");
    Candidate candidate;
    VariantChoice& choice = candidate.choice;
    choice.name = plain;
    const std::string built_for = target::Backend{metadata.backend, {}}.device();
    choice.device = device ? std::string(*device) : built_for;
    if (choice.device != built_for || !target.backend_for(built_for)) {
        choice.reason =
            "it is for the device " + built_for + ", which is not asked for or not there";
        return candidate;
    }
    choice.accepted = true;
    choice.reason = "the only build here; its folder does not say what it was built for";
    judge_archs(choice, archs_of(folder), metadata.backend, target);
    if (!device) {
        set_apart_for_cpu(choice, target);
    }
    return candidate;
}

void mark_preferred(std::vector<VariantChoice>& choices) {
    std::vector<std::string> served;
    for (VariantChoice& choice : choices) {
        const bool first = std::find(served.begin(), served.end(), choice.device) == served.end();
        if (choice.accepted && first) {
            choice.preferred = true;
            served.push_back(choice.device);
        }
    }
}

// Accepted first, then those for the CPU; the target's own backend before others; then by
// preference, then by name.
bool comes_before(const Candidate& a, const Candidate& b, const Target& target) {
    if (a.choice.accepted != b.choice.accepted) {
        return a.choice.accepted;
    }
    if (a.choice.for_cpu != b.choice.for_cpu) {
        return a.choice.for_cpu;
    }
    if (a.variant.has_value() != b.variant.has_value()) {
        return a.variant.has_value();
    }
    const std::string own = target.backend.device();
    if ((a.choice.device == own) != (b.choice.device == own)) {
        return a.choice.device == own;
    }
    if (!a.variant) {
        return a.choice.name < b.choice.name;
    }
    return is_preferred(*a.variant, *b.variant);
}

std::vector<VariantChoice> in_order(std::vector<Candidate> candidates, const Target& target) {
    std::sort(candidates.begin(), candidates.end(),
              [&](const auto& a, const auto& b) { return comes_before(a, b, target); });
    std::vector<VariantChoice> choices;
    for (Candidate& candidate : candidates) {
        choices.push_back(std::move(candidate.choice));
    }
    mark_preferred(choices);
    return choices;
}

std::vector<VariantChoice> list(const fs::path& kernel_dir, const Target& target,
                                std::optional<std::string_view> device) {
    const KernelFolder folder = open_kernel_folder(kernel_dir);
    std::vector<Candidate> candidates;
    switch (folder.kind) {
        case FolderKind::package:
            return {{.name = base::absolute_path(kernel_dir).filename().string(),
                     .device = "any",
                     .accepted = true,
                     .preferred = true,
                     .reason = "a plain Python package, for every machine"}};
        case FolderKind::build:
            candidates.push_back(judge_single(kernel_dir, target, device));
            break;
        case FolderKind::repository:
            for (const std::string& name : folder.variants) {
                candidates.push_back(judge({name, archs_of(folder.builds / name)}, target, device));
            }
            break;
    }
    return in_order(std::move(candidates), target);
}

std::vector<VariantChoice> rank(std::span<const OfferedVariant> offered, const Target& target,
                                std::optional<std::string_view> device) {
    std::vector<Candidate> candidates;
    for (const OfferedVariant& variant : offered) {
        candidates.push_back(judge(variant, target, device));
    }
    return in_order(std::move(candidates), target);
}

}  // namespace

std::vector<VariantChoice> list_variants(const fs::path& kernel_dir, const Target& target) {
    return list(kernel_dir, target, std::nullopt);
}

std::vector<VariantChoice> list_variants(const fs::path& kernel_dir, const Target& target,
                                         std::string_view device) {
    return list(kernel_dir, target, device);
}

std::vector<VariantChoice> rank_variants(std::span<const OfferedVariant> offered,
                                         const Target& target) {
    return rank(offered, target, std::nullopt);
}

std::vector<VariantChoice> rank_variants(std::span<const OfferedVariant> offered,
                                         const Target& target, std::string_view device) {
    return rank(offered, target, device);
}

}  // namespace twinkle::kernel
