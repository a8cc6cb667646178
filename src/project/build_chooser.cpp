#include "project/build_chooser.h"

#include <algorithm>

#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "kernel/operators.h"
#include "project/locked_build.h"
#include "project/newer_version.h"
#include "target/compiled_code.h"
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

// Every file that the lock has of a Hub kernel's build is there, right or wrong.
bool is_complete(const KernelSource& source, const std::string& variant) {
    const fs::path folder = source.folder / "build" / variant;
    std::error_code error;
    const LockedVariant* locked = source.locked->find(variant);
    return fs::is_directory(folder, error) &&
           (locked == nullptr ||
            std::all_of(locked->files.begin(), locked->files.end(), [&](const LockedFile& file) {
                return fs::exists(folder / file.path, error);
            }));
}

// Whether the package calls an operator whose schema its libraries do not show, or a library that
// defines some shows none.
bool shows_too_few(const kernel::Build& build, const kernel::LayerList& layers,
                   const kernel::FunctionList& functions) {
    std::set<std::string> shown;
    for (const MappedOperator& op : build.operators) {
        shown.insert(op.name.substr(0, op.name.find('.')));
    }
    const auto calls_more = [&](const auto& one) {
        const auto& called = one.usage.operators;
        return std::any_of(called.begin(), called.end(),
                           [&](const std::string& name) { return !shown.contains(name); });
    };
    const bool defines =
        std::any_of(build.libraries.begin(), build.libraries.end(),
                    [](const auto& library) { return kernel::defines_operators(library.library); });
    return defines &&
           (shown.empty() || std::any_of(layers.layers.begin(), layers.layers.end(), calls_more) ||
            std::any_of(functions.functions.begin(), functions.functions.end(), calls_more));
}

std::string names_of(const std::vector<MappedOperator>& operators) {
    std::vector<std::string> names;
    for (const MappedOperator& op : operators) {
        names.push_back(base::printable(op.name));
    }
    return base::join(names, ", ");
}

}  // namespace

// What the lock knows is chosen from all builds that there are, be they on this machine or not.
std::vector<VariantChoice> BuildChooser::choices(const KernelSource& source,
                                                 const std::string& device) const {
    const bool all_known =
        source.locked != nullptr && !source.locked->is_local() && !source.locked->variants.empty();
    if (!all_known) {
        return kernel::list_variants(source.folder, target_, device);
    }
    std::vector<kernel::OfferedVariant> offered;
    for (const LockedVariant& variant : source.locked->variants) {
        offered.push_back({variant.name, [&variant, &source] {
                               if (!variant.concat_hash.empty()) {
                                   return kernel::read_metadata(source.folder / "build" /
                                                                variant.name / "metadata.json")
                                       .archs;
                               }
                               return variant.archs;
                           }});
    }
    return kernel::rank_variants(offered, target_, device);
}

fs::path BuildChooser::folder_of(const KernelSource& source, const VariantChoice& choice) const {
    if (source.locked != nullptr && !source.locked->is_local()) {
        fs::path folder = source.folder / "build" / choice.name;
        if (!is_complete(source, choice.name)) {
            throw Error(ErrorCode::not_found, {.what = "the build " + choice.name + " of " +
                                                       source.name + " is not in the cache",
                                               .where = base::display_path(source.folder),
                                               .why = "",
                                               .hint = locator_.fetch_command() + " gets it"});
        }
        return folder;
    }
    const kernel::KernelFolder folder = kernel::open_kernel_folder(source.folder);
    return folder.kind == kernel::FolderKind::repository ? folder.builds / choice.name
                                                         : source.folder;
}

// The build's entry in the lock; none: the lock has no hashes. Its metadata decides how the rest is
// read, so it is held against the lock before anybody looks into it.
const LockedVariant* BuildChooser::locked_variant(const KernelSource& source,
                                                  const VariantChoice& choice,
                                                  const fs::path& folder) {
    if (source.locked == nullptr) {
        return nullptr;
    }
    const LockedKernel& locked = *source.locked;
    if (locked.variants.empty()) {
        warnings_.push_back(source.name + " is pinned by kernels.lock, which has no hashes");
        return nullptr;
    }
    const bool whole = locked.is_local() && folder == source.folder;
    const LockedVariant* variant = locked.find(whole ? "." : choice.name);
    if (variant == nullptr) {
        throw Error(ErrorCode::verification,
                    {.what = "the build " + choice.name + " of " + source.name + " is not locked",
                     .where = base::display_path(folder),
                     .why = "it was not there when the kernel was locked",
                     .hint = "run twinkle lock"});
    }
    if (!variant->metadata_sha256.empty() &&
        base::hash_file(folder / "metadata.json").sha256 != variant->metadata_sha256) {
        throw Error(ErrorCode::verification,
                    {.what = "the metadata of " + source.name + " is not what was locked",
                     .where = base::display_path(folder / "metadata.json"),
                     .why = "its SHA-256 differs",
                     .hint = repair_hint(source)});
    }
    return variant;
}

std::string BuildChooser::repair_hint(const KernelSource& source) const {
    return source.locked->is_local() ? "run twinkle lock if that is what it should be"
                                     : "twinkle cache verify finds damaged files, " +
                                           locator_.fetch_command() + " gets them again";
}

void BuildChooser::check_files(const KernelSource& source, const LockedVariant& variant,
                               const kernel::Build& build) {
    if (variant.concat_hash.empty()) {
        check_locked_build(variant, build.path, build.files, source.name, repair_hint(source));
    } else if (!check_concat_hash(*source.locked, variant, locator_.cache(), build.path,
                                  build.files)) {
        warnings_.push_back("the hash that kernels.lock has of " + source.name +
                            " was not checked: the cache does not say which files are in LFS");
    }
}

const BuildChooser::Loaded& BuildChooser::load(const KernelSource& source,
                                               const VariantChoice& choice) {
    const fs::path folder = folder_of(source, choice);
    if (const auto found = loaded_.find(folder); found != loaded_.end()) {
        return found->second;
    }
    const LockedVariant* locked = locked_variant(source, choice, folder);
    Loaded loaded{read_(folder), {}, {}};
    if (locked != nullptr) {
        check_files(source, *locked, loaded.build);
    }
    loaded.layers = kernel::read_layers(loaded.build.sources);
    loaded.functions = kernel::read_functions(loaded.build.sources);
    const std::string& name = source.name;
    const auto& metadata = loaded.build.metadata;
    if (metadata && metadata->provenance && metadata->provenance->dirty()) {
        warnings_.push_back(name + " was built from a source tree with uncommitted changes");
    }
    if (metadata && !metadata->digest) {
        warnings_.push_back(name + " has no digest: its files were hashed as they are");
    }
    return loaded_.emplace(folder, std::move(loaded)).first->second;
}

void BuildChooser::add_dependencies(const KernelSource& source, const kernel::Build& build,
                                    const std::string& device) {
    if (!build.metadata) {
        return;
    }
    chain_.push_back(source.name);
    for (const kernel::KernelDependency& needed : build.metadata->kernel_depends) {
        const LockedDependency dependency = locked_dependency(needed);
        const std::string where = source.name + " depends on " + dependency.text();
        if (std::find(chain_.begin(), chain_.end(), dependency.text()) != chain_.end()) {
            throw Error(ErrorCode::refused,
                        {.what = "the dependencies of a kernel lead back to itself",
                         .where = base::display_path(build.path),
                         .why = base::join(chain_, " → ") + " → " + dependency.text(),
                         .hint = "tell its publisher"});
        }
        const KernelSource found = locator_.locate(dependency, where);
        if (choose(found, device) == nullptr) {
            fail(found, {device}, where);
        }
    }
    chain_.pop_back();
}

const ChosenBuild* BuildChooser::choose(const KernelSource& source, const std::string& device) {
    const auto key = std::pair(source.name, device);
    if (const auto found = chosen_.find(key); found != chosen_.end()) {
        return found->second.get();
    }
    const auto all = choices(source, device);
    refuse_broken(source, all);
    mapping_.decisions.push_back(decide(source, device, all));
    if (all.empty() || !all.front().preferred) {
        chosen_[key] = nullptr;
        return nullptr;
    }
    const VariantChoice& best = all.front();
    const Loaded& loaded = load(source, best);
    if (const auto reasons = reasons_against(loaded.build); !reasons.empty()) {
        Decision& decision = mapping_.decisions.back();
        unfit_[key] = best.name + ": " + base::join(reasons, "; ");
        decision.rejected.push_back({best.name, base::join(reasons, "; ")});
        decision.chosen = std::nullopt;
        decision.because = "no build runs on the target";
        chosen_[key] = nullptr;
        return nullptr;
    }
    auto chosen = std::make_unique<ChosenBuild>();
    chosen->layers = loaded.layers;
    chosen->functions = loaded.functions;
    chosen->python_needs = loaded.build.python_needs;
    chosen->package = base::display_path(loaded.build.package);
    MappedKernel& kernel = chosen->kernel;
    kernel.name = source.name;
    kernel.repo_id = source.repo_id;
    kernel.commit = source.commit;
    kernel.device = best.device;
    kernel.path = base::absolute_path(loaded.build.path);
    if (loaded.build.metadata) {
        kernel.variant = best.name;
        kernel.op_namespace = loaded.build.has_code() ? loaded.build.metadata->id : "";
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
    chosen->operators_complete = !loaded.build.has_code();
    if (shows_too_few(loaded.build, loaded.layers, loaded.functions)) {
        learn_operators(*chosen);
    }
    add_dependencies(source, loaded.build, device);
    return (chosen_[key] = std::move(chosen)).get();
}

// Empty: one of its packages runs on the target, or it has none.
std::vector<std::string> BuildChooser::reasons_against(const kernel::Build& build) const {
    std::vector<std::string> all;
    for (const kernel::BuildPackage& one : build.packages) {
        const auto reasons =
            target::reasons_against(one.package.model.made_for, target_, features_);
        if (reasons.empty()) {
            return {};
        }
        all.push_back(one.path + ": " + base::join(reasons, ", "));
    }
    return all;
}

const ChosenBuild& BuildChooser::add_package(const RepositoryKeys& package,
                                             const kernel::Build& build) {
    const archive::CompiledModel& model = build.packages.front().package.model;
    auto chosen = std::make_unique<ChosenBuild>();
    chosen->layers = kernel::read_layers(build.sources);
    chosen->package = base::display_path(package.package_file);
    chosen->operators_complete = true;
    MappedKernel& kernel = chosen->kernel;
    kernel.variant = kernel::package_variant;
    kernel.path = base::absolute_path(build.path);
    kernel.device = model.made_for.device;
    if (const auto capability = target::capability_text(model.made_for)) {
        kernel.archs = {*capability};
    }
    kernel.op_namespace = kernel::package_namespace(build.files.front().sha256);
    kernel.operators = build.operators;
    kernel.files = build.files;
    kernel.name = package.package_text;
    const auto taken = [&](const MappedKernel& other) {
        return other.name == kernel.name && other.build_id() != kernel.build_id();
    };
    if (std::any_of(mapping_.kernels.begin(), mapping_.kernels.end(), taken)) {
        kernel.name = package.package_file.string();
    }
    mapping_.kernels.push_back(kernel);
    return *(chosen_[{package.package_file.string(), kernel.device}] = std::move(chosen));
}

const ChosenBuild* BuildChooser::choose_package(const RepositoryKeys& package,
                                                const std::vector<std::string>& devices,
                                                const std::string& where, Decision& decision) {
    const auto& file = package.package_file;
    for (const std::string& device : devices) {
        if (const auto found = chosen_.find({file.string(), device}); found != chosen_.end()) {
            return found->second.get();
        }
    }
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) {
        throw Error(ErrorCode::not_found, {.what = "there is no package " + package.package_text,
                                           .where = where,
                                           .why = base::display_path(file) + " is no file",
                                           .hint = ""});
    }
    const auto build = kernel::read_package_file(file);
    if (!build) {
        throw Error(ErrorCode::malformed,
                    {.what = "the package cannot be a kernel",
                     .where = base::display_path(file),
                     .why = "it does not say which operator AOTInductor has compiled into it",
                     .hint = "script/compile_kernel.py compiles packages that do"});
    }
    const std::string& device = build->packages.front().package.model.made_for.device;
    auto reasons = reasons_against(*build);
    if (reasons.empty() && std::find(devices.begin(), devices.end(), device) == devices.end()) {
        reasons.push_back("it is compiled for " + device);
    }
    if (!reasons.empty()) {
        decision.rejected.push_back({package.package_text, base::join(reasons, "; ")});
        return nullptr;
    }
    return &add_package(package, *build);
}

void BuildChooser::learn_operators(ChosenBuild& build) {
    MappedKernel& kernel = build.kernel;
    if (build.operators_complete || !asked_.emplace(kernel.name, kernel.device).second) {
        return;
    }
    Decision decision{"operators of " + kernel.name + " for " + kernel.device,
                      std::nullopt,
                      "perhaps more than its library shows, which loading it tells",
                      {}};
    const auto known = ask_ ? ask_(kernel) : AskOperators::result_type(tl::unexpect, "");
    if (known) {
        kernel.operators = *known;
        build.operators_complete = true;
        decision.chosen = names_of(kernel.operators);
        decision.because = "registered by its library, loaded in a child process";
        for (MappedKernel& mapped : mapping_.kernels) {
            if (mapped.name == kernel.name && mapped.device == kernel.device) {
                mapped.operators = kernel.operators;
            }
        }
    } else if (!known.error().empty()) {
        decision.because += ": " + known.error();
    }
    mapping_.decisions.push_back(std::move(decision));
}

void BuildChooser::learn_all_operators(const ChosenBuild& build) {
    for (const auto& [key, chosen] : chosen_) {
        if (chosen.get() == &build) {
            learn_operators(*chosen);
        }
    }
}

const ChosenBuild* BuildChooser::choose_bound(const KernelSource& source, const std::string& device,
                                              const std::string& where, bool strict) {
    const ChosenBuild* build = choose(source, device);
    if (build == nullptr) {
        if (strict && device != "cpu") {
            fail(source, {device}, where);
        }
        unserved_.emplace(source.name, device);
    }
    return build;
}

void BuildChooser::choose_each(const KernelSource& source, const std::vector<std::string>& devices,
                               const std::string& bound_device, const std::string& where,
                               bool strict, Decision& decision, const Take& take) {
    bool any = false;
    for (const std::string& device : devices) {
        const ChosenBuild* build = choose_bound(source, device, where, strict);
        if (build == nullptr) {
            decision.rejected.push_back({device, "no build of " + source.name + " for it"});
            continue;
        }
        any = true;
        const bool everywhere = build->kernel.device == "any" && bound_device.empty();
        take(everywhere ? "any" : device, *build);
        if (everywhere) {
            break;
        }
    }
    if (!any) {
        fail(source, devices, where);
    }
}

std::vector<std::string> BuildChooser::without_build(const std::string& device) const {
    std::vector<std::string> names;
    for (const auto& [kernel, missing] : unserved_) {
        if (missing == device) {
            names.push_back(kernel);
        }
    }
    return names;
}

void BuildChooser::fail(const KernelSource& source, const std::vector<std::string>& devices,
                        const std::string& where) const {
    std::vector<std::string> reasons;
    for (const std::string& device : devices) {
        for (const VariantChoice& choice : choices(source, device)) {
            const std::string prefix = devices.size() > 1 ? device + ": " : "";
            reasons.push_back(prefix + base::printable(choice.name) + ": " + choice.reason);
        }
        if (const auto unfit = unfit_.find({source.name, device}); unfit != unfit_.end()) {
            reasons.push_back(unfit->second);
        }
    }
    const auto newer = source.repo_id.empty()
                           ? std::nullopt
                           : newer_version_that_fits(locator_.cache(), source.repo_id, source.pin,
                                                     target_, devices);
    throw Error(
        ErrorCode::not_found,
        {.what = "no build of " + source.name +
                 (devices == target_.devices() ? "" : " for " + base::join(devices, " or ")) +
                 " runs on the target (" + target_.text() + ")",
         .where = where.empty() ? base::display_path(source.folder) : where,
         .why = base::join(reasons, "\n         "),
         .hint = newer ? "version " + std::to_string(newer->version) + " has a build that fits (" +
                             newer->build + "): twinkle add " + source.repo_id + "@" +
                             std::to_string(newer->version)
                       : "twinkle versions lists them; --target chooses for another "
                         "machine"});
}

std::string rejections_text(const Decision& decision) {
    std::vector<std::string> lines;
    for (const Rejection& rejection : decision.rejected) {
        lines.push_back(rejection.name + ": " + rejection.because);
    }
    return base::join(lines, "; ");
}

void add_chosen(Decision& decision, const std::string& what, const std::string& device,
                const std::string& mode) {
    const std::string text = what + " on " + device + " (" + mode + ")";
    decision.chosen = decision.chosen ? *decision.chosen + ", " + text : text;
}

}  // namespace twinkle::project
