#include "kernel/package_files.h"

#include "base/file.h"
#include "twinkle/error.h"

namespace twinkle::kernel {

namespace fs = std::filesystem;

std::vector<std::string> package_files(const fs::path& folder) {
    std::error_code error;
    for (const char* name : {"__init__.py", "layers.py", "_ops.py", "metadata.json"}) {
        if (fs::is_directory(folder / name, error)) {
            throw Error(ErrorCode::malformed,
                        {.what = std::string(name) + " of a kernel is a folder",
                         .where = base::display_path(folder / name),
                         .why = "a kernel has a file of this name, or nothing",
                         .hint = "give the folder another name"});
        }
    }
    return base::list_files(folder);
}

}  // namespace twinkle::kernel
