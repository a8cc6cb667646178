#include "project/local_kernels.h"

#include "base/file.h"
#include "base/text.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::project {

std::map<std::string, fs::path> local_kernels(const target::Machine& machine) {
    std::map<std::string, fs::path> folders;
    const std::string text = machine.environment("LOCAL_KERNELS").value_or("");
    if (text.empty()) {
        return folders;
    }
    for (const std::string& entry : base::split(text, ':')) {
        const auto equals = entry.find('=');
        if (equals == std::string::npos) {
            throw Error(ErrorCode::malformed, {.what = "cannot read LOCAL_KERNELS",
                                               .where = base::printable(entry),
                                               .why = "it is not repository=path",
                                               .hint = "as in LOCAL_KERNELS=org/name=/path:…"});
        }
        folders[entry.substr(0, equals)] = base::absolute_path(entry.substr(equals + 1));
    }
    return folders;
}

std::string local_kernel_warning(const std::string& repo_id, const fs::path& folder) {
    return repo_id + " is taken from " + base::display_path(folder) + " (LOCAL_KERNELS)";
}

}  // namespace twinkle::project
