#include "child/confinement.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string_view>

#include "child/landlock.h"
#include "child/seccomp_filter.h"

namespace twinkle::child {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_listed = 4096;

// libc10.so, libm.so.6
bool is_library(const fs::path& file) {
    const auto name = file.filename().string();
    return name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

// The folders from which this process has loaded libraries: LibTorch, its dependencies, twinkle.
std::set<fs::path> loaded_folders() {
    std::set<fs::path> folders;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const auto slash = line.find('/');
        if (slash == std::string::npos) {
            continue;
        }
        const fs::path file(line.substr(slash));
        const fs::path folder = file.parent_path();
        if (is_library(file) && folder.is_absolute() && folder != folder.root_path() &&
            !folder.string().starts_with("/proc")) {
            folders.insert(folder);
        }
    }
    return folders;
}

// LibTorch opens more files of its own folder later, so all of that is readable. Other folders may
// hold private files: only their libraries are.
void add_loaded(std::vector<fs::path>& files) {
    for (const auto& folder : loaded_folders()) {
        std::error_code error;
        if (!fs::exists(folder / "libtorch_cpu.so", error)) {
            const auto libraries = libraries_in(folder);
            files.insert(files.end(), libraries.begin(), libraries.end());
            continue;
        }
        files.push_back(folder);
        // The CUDA libraries for site-packages/torch/lib are in site-packages/nvidia.
        files.push_back(folder.parent_path().parent_path() / "nvidia");
    }
}

void add_library_path(std::vector<fs::path>& files) {
    const char* text = std::getenv("LD_LIBRARY_PATH");
    std::string_view rest = text != nullptr ? text : "";
    while (!rest.empty()) {
        const auto colon = std::min(rest.find(':'), rest.size());
        const fs::path folder(rest.substr(0, colon));
        if (folder.is_absolute()) {
            const auto libraries = libraries_in(folder);
            files.insert(files.end(), libraries.begin(), libraries.end());
        }
        rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
}

void add_beginning_with(const fs::path& folder, std::string_view prefix,
                        std::vector<fs::path>& files) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().filename().string().starts_with(prefix)) {
            files.push_back(entry->path());
        }
    }
}

void add_gpu(SystemFiles& files) {
    for (const char* path :
         {"/proc/driver/nvidia", "/proc/devices", "/proc/sys", "/proc/modules", "/sys",
          "/etc/nvidia", "/usr/share/nvidia", "/usr/local/nvidia", "/run/nvidia-persistenced"}) {
        files.readable.emplace_back(path);
    }
    add_beginning_with("/usr/local", "cuda", files.readable);
    add_beginning_with("/dev", "nvidia", files.devices);
    files.devices.emplace_back("/proc/self/task");  // it gives names to its threads
}

// Drops capabilities, which bypass the remaining limits; keeps the one to read, which Landlock
// limits.
void drop_capabilities() {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct data[2]{};
    data[0].effective = data[0].permitted = 1U << CAP_DAC_READ_SEARCH;
    if (::syscall(SYS_capset, &header, data) != 0) {
        data[0] = {};
        ::syscall(SYS_capset, &header, data);
    }
}

}  // namespace

std::vector<fs::path> libraries_in(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end;
         !error && entry != end && files.size() < most_listed; entry.increment(error)) {
        std::error_code ignored;
        if (is_library(entry->path()) && entry->is_regular_file(ignored)) {
            files.push_back(entry->path());
        }
    }
    return files;
}

SystemFiles system_files(bool gpu) {
    SystemFiles files;
    for (const char* path : {"/lib",
                             "/lib32",
                             "/lib64",
                             "/usr/lib",
                             "/usr/lib32",
                             "/usr/lib64",
                             "/usr/local/lib",
                             "/usr/local/lib64",
                             "/etc/ld.so.cache",
                             "/etc/ld.so.preload",
                             "/etc/localtime",
                             "/usr/share/zoneinfo",
                             "/usr/share/locale",
                             "/proc/self",
                             "/proc/cpuinfo",
                             "/proc/meminfo",
                             "/proc/stat",
                             "/proc/version",
                             "/proc/sys/vm/overcommit_memory",
                             "/proc/sys/kernel/osrelease",
                             "/sys/devices/system",
                             "/sys/kernel/mm/transparent_hugepage",
                             "/sys/kernel/mm/hugepages",
                             "/dev/urandom",
                             "/dev/random",
                             "/dev/zero"}) {
        files.readable.emplace_back(path);
    }
    add_loaded(files.readable);
    add_library_path(files.readable);
    files.devices.emplace_back("/dev/null");
    if (gpu) {
        add_gpu(files);
    }
    return files;
}

void hide_from_other_processes() {
    ::prctl(PR_SET_DUMPABLE, 0);
}

std::vector<std::string> confine(const Confinement& confinement) {
    hide_from_other_processes();
    if (confinement.none) {
        return {};
    }
    std::vector<std::string> missing;
    SystemFiles files = system_files(confinement.gpu);
    files.readable.insert(files.readable.end(), confinement.readable.begin(),
                          confinement.readable.end());
    drop_capabilities();
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        missing.emplace_back(
            "kernels were not confined: this system cannot withhold privileges from a process");
        return missing;
    }
    const int version = landlock_version();
    if (!restrict_files({std::move(files.readable), std::move(files.devices)})) {
        missing.emplace_back(
            "kernels could read and write this user's files: this system has no Landlock");
    }
    if (!restrict_calls({.local_sockets = confinement.gpu, .deny_truncation = version < 3})) {
        missing.emplace_back(
            "kernels could use the network, start programs and reach other processes: this system "
            "has no seccomp filters");
    }
    return missing;
}

}  // namespace twinkle::child
