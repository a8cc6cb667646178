#include "operations/edit_manifest.h"

#include "base/file.h"
#include "operations/kernel_states.h"
#include "project/kernel_spec.h"
#include "project/manifest_edit.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::operations {
namespace {

project::ManifestFormat format_of(const Project& project) {
    return project.files.manifest.filename() == "pyproject.toml"
               ? project::ManifestFormat::pyproject
               : project::ManifestFormat::twinkle;
}

void bring_back(base::AtomicFile& old, const Project& project, const Error& reason) {
    try {
        old.commit();
    } catch (const Error&) {
        auto details = reason.details();
        details.hint += std::string(details.hint.empty() ? "" : "; ") +
                        base::display_path(project.files.manifest) +
                        " keeps its change: twinkle lock brings the lock to it";
        throw Error(reason.code(), details);
    }
}

// Writes the new text and locks; what goes wrong there brings the old text back.
LockReport write_and_lock(Context& context, const Project& project, const std::string& before,
                          const std::string& after, const LockOptions& options) {
    if (after == before) {
        return lock_project(context, options);
    }
    // The way back needs no space: what goes wrong may be that the disk is full.
    base::AtomicFile old(project.files.manifest);
    old.write(before);
    base::write_file_atomically(project.files.manifest, after);
    try {
        return lock_project(context, options);
    } catch (const Error& error) {
        bring_back(old, project, error);
        throw;
    } catch (...) {
        old.commit();
        throw;
    }
}

std::string read_manifest(const Project& project) {
    return base::read_file(project.files.manifest, "manifest", 4u << 20);
}

// A folder is called by its own name.
project::KernelEntry local_entry(const Project& project, const std::string& text) {
    const fs::path folder = base::absolute_path(text);
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        throw Error(ErrorCode::not_found, {.what = "no kernel at this path",
                                           .where = text,
                                           .why = "there is no such folder",
                                           .hint = {}});
    }
    const auto name = folder.has_filename() ? folder.filename() : folder.parent_path().filename();
    return {name.string(),
            {},
            folder.lexically_relative(base::absolute_path(project.files.folder)).generic_string()};
}

project::KernelEntry hub_entry(Context& context, const std::string& text) {
    auto spec = project::parse_kernel_spec(text);
    if (spec.pin.empty()) {
        spec.pin = find_state(context, spec).pin();
    }
    return {spec.repo_id, spec.pin, ""};
}

std::string text_of(const project::KernelEntry& entry) {
    return entry.pin.empty() ? entry.name : entry.name + "@" + entry.pin.text();
}

}  // namespace

EditReport add_kernels(Context& context, const std::vector<std::string>& specs,
                       const std::vector<std::string>& trust) {
    const auto project = context.need_project("a kernel is added to a manifest");
    const auto before = read_manifest(project);
    std::string after = before;
    EditReport report{project.files.manifest, {}, {}};
    for (const auto& spec : specs) {
        const auto entry =
            project::is_path(spec) ? local_entry(project, spec) : hub_entry(context, spec);
        after = project::add_kernel(after, format_of(project),
                                    base::display_path(project.files.manifest), entry);
        report.kernels.push_back(text_of(entry));
    }
    report.lock = write_and_lock(context, project, before, after, {.trust = trust});
    return report;
}

EditReport remove_kernels(Context& context, const std::vector<std::string>& names) {
    const auto project = context.need_project("a kernel is removed from a manifest");
    const auto before = read_manifest(project);
    std::string after = before;
    EditReport report{project.files.manifest, {}, {}};
    for (const auto& name : names) {
        const auto at = name.find('@');
        const auto pin = at == std::string::npos
                             ? std::optional<project::Pin>{}
                             : std::optional(project::parse_pin(name.substr(at + 1)));
        after = project::remove_kernel(after, format_of(project),
                                       base::display_path(project.files.manifest),
                                       name.substr(0, at), pin);
        report.kernels.push_back(name);
    }
    report.lock = write_and_lock(context, project, before, after, {});
    return report;
}

}  // namespace twinkle::operations
