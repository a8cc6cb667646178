#include "operations/inspect_kernel.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "cache/snapshot.h"
#include "kernel/binding_sources.h"
#include "kernel/build.h"
#include "kernel/versions.h"
#include "operations/build_tuning.h"
#include "operations/kernel_states.h"
#include "operations/offered_kernel.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::operations {
namespace {

constexpr std::uint64_t largest_source = 4u << 20;

[[noreturn]] void no_variant(const std::string& wanted, const std::string& where,
                             const std::vector<std::string>& variants) {
    const auto near = base::nearest(wanted, variants);
    throw Error(
        ErrorCode::not_found,
        {.what = "there is no build " + base::printable(wanted),
         .where = where,
         .why = variants.empty() ? "it has no builds" : "its builds: " + base::join(variants, ", "),
         .hint = near ? "did you mean " + *near + "?" : ""});
}

// The named one, the first that fits the target, else the first: what is in it can be told for
// every machine.
std::string choose(const std::optional<std::string>& wanted,
                   const std::vector<std::string>& variants,
                   const std::vector<kernel::VariantChoice>& choices, const std::string& where) {
    if (wanted) {
        if (std::find(variants.begin(), variants.end(), *wanted) == variants.end()) {
            no_variant(*wanted, where, variants);
        }
        return *wanted;
    }
    for (const auto& choice : choices) {
        if (choice.preferred || choice.for_cpu) {
            return choice.name;
        }
    }
    if (variants.empty()) {
        no_variant("", where, variants);
    }
    return variants.front();
}

std::string name_of(const fs::path& folder) {
    return base::absolute_path(folder).filename().string();
}

// The metadata and the sources of a build on the Hub, as if they were all of it.
kernel::Build remote_build(Context& context, const OfferedKernel& offer,
                           const OfferedBuild& offered) {
    const std::string prefix = "build/" + offered.variant + "/";
    std::vector<cache::TreeFile> sources;
    kernel::Build build;
    build.path = prefix;
    build.metadata = offered.metadata;
    for (const auto& file : offered.files) {
        const std::string path = file.path.substr(prefix.size());
        build.files.push_back({path, file.size, file.lfs_sha256.value_or("")});
        if (path.ends_with(".py") && file.size <= largest_source) {
            sources.push_back(file);
        }
    }
    const auto texts =
        context.hub().read_files(offer.repo_id, offer.commit, sources, largest_source);
    kernel::PackageSources all;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        all.emplace(sources[i].path.substr(prefix.size()), texts[i]);
    }
    const auto package = kernel::package_prefix(
        all, build.metadata ? build.metadata->package_name() : std::string());
    build.sources = kernel::package_sources(all, package.value_or(""));
    return build;
}

bool is_whole(const Context& context, const OfferedKernel& offer, const OfferedBuild& build) {
    return std::all_of(build.files.begin(), build.files.end(), [&](const auto& file) {
        return cache::has_file(context.cache(), offer.repo_id, offer.commit, file.path, file.size);
    });
}

}  // namespace

std::optional<fs::path> project_package(const fs::path& path) {
    std::error_code error;
    if (!fs::exists(path / "build.toml", error)) {
        return std::nullopt;
    }
    // torch-ext/<name>/, whatever the name.
    std::vector<fs::path> packages;
    for (const char* extension : {"torch-ext", "tvm-ffi-ext"}) {
        for (fs::directory_iterator entry(path / extension, error), end; !error && entry != end;
             entry.increment(error)) {
            if (fs::exists(entry->path() / "__init__.py", error)) {
                packages.push_back(entry->path());
            }
        }
    }
    std::sort(packages.begin(), packages.end());
    return packages.empty() ? std::nullopt : std::optional(packages.front());
}

KernelView inspect_folder(const fs::path& path, const std::optional<std::string>& variant,
                          const target::Target& target) {
    KernelView view;
    if (const auto package = project_package(path); package && !variant) {
        kernel::Build build = kernel::read_build(*package);
        build.operators = kernel::operators_of_bindings(path);
        view.inspection = kernel::inspect_build(std::move(build));
        return view;
    }
    const auto folder = kernel::open_kernel_folder(path);
    fs::path build = path;
    if (folder.kind == kernel::FolderKind::repository) {
        view.variants = folder.variants;
        view.variant = choose(variant, folder.variants, kernel::list_variants(path, target),
                              base::display_path(path));
        build = folder.builds / view.variant;
    } else {
        view.variant = folder.kind == kernel::FolderKind::build ? name_of(path) : "";
        if (variant && *variant != view.variant) {
            no_variant(*variant, base::display_path(path), {view.variant});
        }
    }
    view.inspection = kernel::inspect_build(build);
    view.tuning = read_build_tuning(build, view.inspection.problems);
    return view;
}

KernelView inspect_spec(Context& context, const project::KernelSpec& spec,
                        const std::optional<std::string>& variant, const target::Target& target) {
    if (const auto folder = local_copy(context, spec)) {
        return inspect_folder(*folder, variant, target);
    }
    const auto state = find_state(context, spec);
    const auto offer = read_offer(context, {state.home(), state.commit});
    KernelView view;
    view.repo_id = offer.repo_id;
    view.commit = offer.commit;
    for (const auto& build : offer.builds) {
        view.variants.push_back(build.variant);
    }
    view.variant =
        choose(variant, view.variants,
               kernel::rank_variants(as_offered_variants(context, offer), target), spec.text());
    const OfferedBuild& build = *offer.find(view.variant);
    if (is_whole(context, offer, build)) {
        const auto snapshot = cache::find_snapshot(context.cache(), offer.repo_id, offer.commit);
        view.inspection = kernel::inspect_build(snapshot->folder / "build" / view.variant);
        view.tuning = read_build_tuning(view.inspection.build.path, view.inspection.problems);
    } else {
        view.inspection = kernel::inspect_build(remote_build(context, offer, build));
        const auto& files = view.inspection.build.files;
        view.without_libraries = std::any_of(files.begin(), files.end(), [](const auto& file) {
            return kernel::is_library(file.path);
        });
    }
    return view;
}

}  // namespace twinkle::operations
