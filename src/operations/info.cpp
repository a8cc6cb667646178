#include "operations/info.h"

#include <algorithm>

#include "base/file.h"
#include "kernel/build.h"
#include "operations/kernel_states.h"
#include "operations/offered_kernel.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::operations {
namespace {

bool same_request(const kernel::KernelDependency& a, const kernel::KernelDependency& b) {
    return a.repo_id == b.repo_id && a.version == b.version && a.revision == b.revision;
}

template <class T>
void add_new(std::vector<T>& to, const T& value) {
    if (std::find(to.begin(), to.end(), value) == to.end()) {
        to.push_back(value);
    }
}

void add_build(KernelInfo& info, const std::string& variant,
               const std::optional<kernel::Metadata>& metadata) {
    info.variants.push_back(variant);
    if (!metadata) {
        return;
    }
    if (!info.metadata) {
        info.metadata = metadata;
    }
    add_new(info.backends, std::string(target::Backend{metadata->backend, {}}.device()));
    for (const auto& arch : metadata->archs) {
        add_new(info.archs, arch);
    }
    for (const auto& dependency : metadata->kernel_depends) {
        const auto known =
            std::any_of(info.dependencies.begin(), info.dependencies.end(),
                        [&](const auto& other) { return same_request(other, dependency); });
        if (!known) {
            info.dependencies.push_back(dependency);
        }
    }
    if (metadata->provenance && metadata->provenance->dirty()) {
        info.dirty.push_back(variant);
    }
}

[[noreturn]] void no_builds(const std::string& where) {
    throw Error(ErrorCode::not_found, {.what = "there is no build in it",
                                       .where = where,
                                       .why = "a kernel has its builds in build/<variant>/",
                                       .hint = "name another revision"});
}

void sort_lists(KernelInfo& info) {
    std::sort(info.backends.begin(), info.backends.end());
    std::sort(info.archs.begin(), info.archs.end());
}

std::optional<kernel::Metadata> metadata_in(const fs::path& build) {
    std::error_code error;
    const auto file = build / "metadata.json";
    return fs::exists(file, error) ? std::optional(kernel::read_metadata(file)) : std::nullopt;
}

void add_local_build(KernelInfo& info, const std::string& variant, const fs::path& folder) {
    add_build(info, variant, metadata_in(folder));
    for (const auto& path : base::list_files(folder)) {
        info.bytes += fs::file_size(folder / path);
    }
}

}  // namespace

KernelInfo kernel_info(Context& context, const project::KernelSpec& spec) {
    if (const auto folder = local_copy(context, spec)) {
        return local_kernel_info(*folder);
    }
    const auto state = find_state(context, spec);
    const auto offer = read_offer(context, {state.home(), state.commit});
    KernelInfo info;
    info.repo_id = state.home();
    info.version = state.version();
    info.ref = state.ref;
    info.commit = state.commit;
    for (const auto& version : state.versions) {
        info.versions.push_back(version.number);
    }
    for (const auto& build : offer.builds) {
        add_build(info, build.variant, build.metadata);
        for (const auto& file : build.files) {
            info.bytes += file.size;
        }
    }
    if (info.variants.empty()) {
        no_builds(spec.text());
    }
    sort_lists(info);
    return info;
}

KernelInfo local_kernel_info(const fs::path& folder) {
    const auto opened = kernel::open_kernel_folder(folder);
    KernelInfo info;
    info.path = folder;
    switch (opened.kind) {
        case kernel::FolderKind::package: info.variants.push_back("package"); break;
        case kernel::FolderKind::build:
            add_local_build(info, base::absolute_path(folder).filename().string(), folder);
            break;
        case kernel::FolderKind::repository:
            for (const auto& variant : opened.variants) {
                add_local_build(info, variant, opened.builds / variant);
            }
            break;
    }
    if (info.variants.empty()) {
        no_builds(base::display_path(folder));
    }
    sort_lists(info);
    return info;
}

}  // namespace twinkle::operations
