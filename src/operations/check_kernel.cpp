#include "operations/check_kernel.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>

#include <algorithm>

#include "base/file.h"
#include "binary/library.h"
#include "kernel/build.h"
#include "kernel/build_toml.h"
#include "kernel/check_package.h"
#include "operations/build_tuning.h"
#include "operations/inspect_kernel.h"

namespace fs = std::filesystem;

namespace twinkle::operations {
namespace {

// What the library that has `symbol` defines.
void add_versions_of(const char* symbol, kernel::SymbolLimits& limits) {
    Dl_info info{};
    const void* address = ::dlsym(RTLD_DEFAULT, symbol);
    if (address == nullptr || ::dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
        return;
    }
    const auto library = binary::read_library(fs::path(info.dli_fname));
    if (!library) {
        return;
    }
    for (const auto& one : library->symbols.symbols) {
        const auto version = one.defined ? binary::parse_symbol_version(one.version) : std::nullopt;
        if (!version) {
            continue;
        }
        std::string& newest = limits[version->kind];
        if (newest.empty() || binary::is_newer(version->number, newest)) {
            newest = version->number;
        }
    }
}

class KernelChecker {
public:
    KernelChecker(const fs::path& path, std::optional<kernel::Audience> audience)
        : audience_(audience) {
        report_.root = path;
    }

    CheckReport run() {
        std::error_code error;
        std::optional<kernel::BuildToml> project;
        report_.project = fs::exists(report_.root / "build.toml", error);
        if (report_.project) {
            project = kernel::read_build_toml(report_.root / "build.toml", report_.findings);
            check_project(project);
        } else {
            kernel::open_kernel_folder(report_.root);  // or an error: it is no kernel
        }
        check_builds(project);
        std::stable_sort(report_.findings.begin(), report_.findings.end(),
                         [](const auto& a, const auto& b) { return a.severity > b.severity; });
        return std::move(report_);
    }

private:
    void check_project(const std::optional<kernel::BuildToml>& project) {
        if (project) {
            kernel::check_project_files(*project, report_.root, report_.findings);
            kernel::check_dependencies(project->python_depends, std::nullopt, "build.toml",
                                       report_.findings);
        }
        if (const auto package = project_package(report_.root)) {
            const auto sources = kernel::read_package(*package);
            const std::string shown = fs::relative(*package, report_.root).generic_string() + "/";
            kernel::check_package(
                sources,
                {package->filename().string(),
                 project ? project->python_depends : std::vector<std::string>(), shown},
                report_.findings);
            kernel::check_layers(sources, {}, shown, report_.findings);
        }
    }

    void check_builds(const std::optional<kernel::BuildToml>& project) {
        std::error_code error;
        if (report_.project && !fs::exists(report_.root / "build", error)) {
            return;
        }
        const auto folder = kernel::open_kernel_folder(report_.root);
        switch (folder.kind) {
            case kernel::FolderKind::build:
                check_one(report_.root, base::absolute_path(report_.root).filename().string(), "",
                          project);
                break;
            case kernel::FolderKind::package: check_one(report_.root, "", "", project); break;
            case kernel::FolderKind::repository: {
                const std::string shown =
                    folder.builds == report_.root
                        ? ""
                        : fs::relative(folder.builds, report_.root).generic_string() + "/";
                for (const std::string& variant : folder.variants) {
                    check_one(folder.builds / variant, variant, shown + variant + "/", project);
                }
            }
        }
    }

    void check_one(const fs::path& folder, const std::string& variant, const std::string& shown,
                   const std::optional<kernel::BuildToml>& project) {
        const kernel::BuildCheck check{variant, audience_, limits_here(), shown};
        const auto checked = kernel::check_build(folder, check, report_.findings);
        check_build_tuning(folder, checked.operators, shown, report_.findings);
        report_.builds.push_back(variant);
        report_.for_this_machine_only =
            report_.for_this_machine_only || checked.audience == kernel::Audience::here;
        if (project) {
            kernel::compare_with_build(*project, variant, checked, shown, report_.findings);
        }
    }

    std::optional<kernel::Audience> audience_;
    CheckReport report_;
};

}  // namespace

bool CheckReport::violated() const {
    return std::any_of(findings.begin(), findings.end(), [](const auto& finding) {
        return finding.severity == kernel::Severity::error;
    });
}

kernel::SymbolLimits limits_here() {
    kernel::SymbolLimits limits;
    limits["GLIBC"] = ::gnu_get_libc_version();
    add_versions_of("__cxa_throw", limits);     // the C++ library
    add_versions_of("_Unwind_Resume", limits);  // GCC's own
    return limits;
}

CheckReport check_kernel(const fs::path& path, std::optional<kernel::Audience> audience) {
    return KernelChecker(path, audience).run();
}

}  // namespace twinkle::operations
