#include "cli/model_request.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/text.h"
#include "target/runtime.h"
#include "target/torch_place.h"

namespace twinkle::cli {
namespace fs = std::filesystem;
namespace {

// "float16[…", "(int64[…", "[int64[…", of a tensor, a tuple and a list: no file is named like that.
bool looks_like_specification(const std::string& text) {
    const auto begin = std::min(text.find_first_not_of("(["), text.size());
    const auto bracket = text.find('[', begin);
    return bracket != std::string::npos && bracket > begin &&
           text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", begin) == bracket;
}

// Suggests the name that was meant, or how to make such a file.
std::string hint_for_missing(const fs::path& path, const std::string& role) {
    const fs::path folder = base::absolute_path(path).parent_path();
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        return "there is no folder " + base::display_path(folder);
    }
    std::vector<std::string> names;
    for (fs::directory_iterator entry(folder, error), end;
         !error && entry != end && names.size() < 1000; entry.increment(error)) {
        names.push_back(entry->path().filename().string());
    }
    if (const auto near = base::nearest(path.filename().string(), names)) {
        return "did you mean " + base::printable((path.parent_path() / *near).string()) + "?";
    }
    return role == "model"     ? "name a file that torch.jit.save wrote"
           : role == "mapping" ? "twinkle resolve writes one"
           : role == "record"  ? "a server with TWINKLE_RECORD=FILE writes one"
           : role == "file of choices"
               ? "twinkle inspect MODEL --choices FILE writes one"
               : "name a file that torch.save wrote, or describe the inputs: "
                 "\"int64[1,128]:0..32000\"";
}

}  // namespace

fs::path existing_file(const std::string& path, const std::string& role) {
    std::error_code error;
    const auto status = fs::status(path, error);
    if (!fs::exists(status)) {
        throw Error(ErrorCode::not_found, {.what = "the " + role + " is not there",
                                           .where = path,
                                           .why = error ? error.message() : std::strerror(ENOENT),
                                           .hint = hint_for_missing(path, role)});
    }
    if (fs::is_directory(status)) {
        throw Error(ErrorCode::malformed, {.what = "the " + role + " is a folder, not a file",
                                           .where = path,
                                           .why = {},
                                           .hint = {}});
    }
    return base::absolute_path(path);
}

std::string inputs_argument(const std::string& text) {
    if (looks_like_specification(text) && !fs::exists(text)) {
        return text;
    }
    return existing_file(text, "file of inputs").string();
}

std::vector<fs::path> kernel_folders(const std::vector<std::string>& named) {
    const auto& machine = target::this_machine();
    std::vector<fs::path> folders;
    for (const auto& folder : named) {
        if (!fs::is_directory(folder)) {
            throw Error(ErrorCode::not_found, {.what = "the folder of kernels is not there",
                                               .where = folder,
                                               .why = {},
                                               .hint = {}});
        }
        folders.push_back(base::absolute_path(folder));
    }
    for (const auto& folder :
         base::split(machine.environment("TWINKLE_KERNELS").value_or(""), ':')) {
        if (!folder.empty()) {
            folders.push_back(base::absolute_path(folder));
        }
    }
    folders.push_back(target::installation(machine).kernels);
    return folders;
}

WorkerProgram find_worker(Console& console) {
    const auto& machine = target::this_machine();
    const auto runtime = target::choose_runtime(machine);
    if (!runtime) {
        throw Error(
            ErrorCode::not_found,
            {.what = "there is no runtime, which this command needs",
             .where = target::installation(machine).libexec.string(),
             .why = "this twinkle was built or installed without LibTorch",
             .hint = "build it with -DTWINKLE_RUNTIME=ON, or name the folder of a runtime in "
                     "TWINKLE_LIBEXEC"});
    }
    console.detail("runtime " + runtime->name + " (LibTorch " + runtime->torch_version + ") in " +
                   base::display_path(runtime->folder));
    return {.program = runtime->worker, .torch_lib = target::find_torch_lib(*runtime, machine)};
}

}  // namespace twinkle::cli
