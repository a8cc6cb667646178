#pragma once
// What a process that runs foreign code may still do: compute, start threads, read its inputs and
// the libraries of the system, and write to the descriptors that it was given.

#include <filesystem>
#include <string>
#include <vector>

namespace twinkle::child {

struct Confinement {
    // Files, or folders with all that is below them, beside what system_files() lists.
    std::vector<std::filesystem::path> readable;
    bool gpu = false;   // NVIDIA's devices may be used
    bool none = false;  // nothing is confined: the user has allowed it
};

// What computing takes on any machine: the libraries that this process has loaded, the system's,
// facts of the processor, /dev/null, random numbers, the process's own entry in /proc; with `gpu`
// what CUDA's driver reads, and its devices.
struct SystemFiles {
    std::vector<std::filesystem::path> readable;
    std::vector<std::filesystem::path> devices;
};
SystemFiles system_files(bool gpu);

// The shared libraries in a folder, by their names, so that a folder of a user's can be given for
// them alone.
std::vector<std::filesystem::path> libraries_in(const std::filesystem::path& folder);

// Confines this process, which must have one thread, for good. Returns what the system could not
// do, each as a sentence for the user; empty: all of it is done. Descriptors that are open stay
// usable.
std::vector<std::string> confine(const Confinement& confinement);

// Other processes of this user cannot read this one's memory or environment from here on, and it
// leaves no core. Whatever the system offers, as this is a second line of defence.
void hide_from_other_processes();

}  // namespace twinkle::child
