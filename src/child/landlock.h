#pragma once
// Landlock: the kernel's limits on the files that a process may open. They apply to this thread and
// everything that it starts, for good.

#include <filesystem>
#include <string>
#include <vector>

namespace twinkle::child {

struct FileAccess {
    std::vector<std::filesystem::path> readable;  // a file, or a folder with all that is below it
    std::vector<std::filesystem::path> devices;   // may be written, too
};

// The version that this system supports; 0: none.
int landlock_version();

// From here on only these files can be opened, and nothing can be created, renamed or removed;
// missing files are skipped. If the system supports it, no TCP port can be used, and no signal or
// abstract socket reaches a process outside. False: the system refused, and nothing has changed.
// Needs PR_SET_NO_NEW_PRIVS.
bool restrict_files(const FileAccess& access);

}  // namespace twinkle::child
