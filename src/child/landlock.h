#pragma once
// Landlock: the kernel's limits on the files that a process may open. They hold for this thread and
// all that it starts, for good.

#include <filesystem>
#include <string>
#include <vector>

namespace twinkle::child {

struct FileAccess {
    std::vector<std::filesystem::path> readable;  // a file, or a folder with all that is below it
    std::vector<std::filesystem::path> devices;   // may be written, too
};

// What this system has of it: 0 is nothing.
int landlock_version();

// Nothing but these files can be opened from here on, and nothing can be created, renamed or
// removed; what is not there is left out. Where the system offers it, no TCP port can be used, and
// no signal or abstract socket reaches a process outside. False: the system refused, and all is
// as it was. Needs PR_SET_NO_NEW_PRIVS.
bool restrict_files(const FileAccess& access);

}  // namespace twinkle::child
