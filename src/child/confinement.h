#pragma once
// The rights of a process that runs foreign code: compute, start threads, read its inputs and the
// system's libraries, and write to the descriptors that it was given.

#include <filesystem>
#include <string>
#include <vector>

namespace twinkle::child {

struct Confinement {
    // Files, or folders with everything below them, beside what system_files() lists.
    std::vector<std::filesystem::path> readable;
    bool gpu = false;   // NVIDIA's devices may be used
    bool none = false;  // nothing is confined: the user has allowed it
};

// Files that computing needs on any machine: the libraries that this process has loaded, the
// system's, processor facts, /dev/null, random numbers, the process's own entry in /proc; with
// `gpu` the files that CUDA's driver reads, and its devices.
struct SystemFiles {
    std::vector<std::filesystem::path> readable;
    std::vector<std::filesystem::path> devices;
};
SystemFiles system_files(bool gpu);

// The shared libraries in a folder, by name, so that of a user's folder only these become
// readable.
std::vector<std::filesystem::path> libraries_in(const std::filesystem::path& folder);

// Confines this process for good; it must have one thread. Returns what the system could not
// do, each as a sentence for the user; empty: everything is done. Open descriptors stay
// usable.
std::vector<std::string> confine(const Confinement& confinement);

// From here on other processes of this user cannot read this one's memory or environment, and it
// leaves no core. Best effort, as it is a second line of defence.
void hide_from_other_processes();

}  // namespace twinkle::child
