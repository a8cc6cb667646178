#include "target/torch_place.h"

#include <algorithm>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::target {
namespace {

bool is_there(const fs::path& path) {
    std::error_code error;
    return fs::exists(path, error);
}

// Why the runtime does not serve the LibTorch in `lib`; empty: it does.
std::string mismatch(const fs::path& lib, const Runtime& runtime) {
    const auto found = read_libtorch(lib);
    if (!found) {
        return "there is no libtorch.so";
    }
    if (fit(runtime, *found) > 0) {
        return "";
    }
    return found->backend.kind == BackendKind::cuda && runtime.backend.kind == BackendKind::rocm
               ? "it is a build for CUDA"
               : "it is LibTorch " + base::printable(found->version_text);
}

void add_python_packages(std::vector<fs::path>& places, const fs::path& prefix) {
    std::error_code error;
    std::vector<fs::path> found;
    for (fs::directory_iterator entry(prefix / "lib", error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().filename().string().starts_with("python3")) {
            for (const char* packages : {"site-packages", "dist-packages"}) {
                found.push_back(entry->path() / packages / "torch" / "lib");
            }
        }
    }
    std::sort(found.begin(), found.end());
    places.insert(places.end(), found.begin(), found.end());
}

bool is_environment(const fs::path& prefix) {
    return is_there(prefix / "pyvenv.cfg") || is_there(prefix / "conda-meta");
}

std::vector<fs::path> usual_places(const Machine& machine) {
    std::vector<fs::path> places;
    // An environment that has twinkle has its LibTorch, whether it is active or not.
    if (const fs::path own = machine.executable().parent_path().parent_path();
        is_environment(own)) {
        add_python_packages(places, own);
    }
    for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
        const auto prefix = machine.environment(variable);
        if (prefix && !prefix->empty()) {
            add_python_packages(places, *prefix);
        }
    }
    for (const char* prefix : {"/opt/libtorch", "/usr/local/libtorch"}) {
        places.push_back(fs::path(prefix) / "lib");
    }
    add_python_packages(places, machine.home() / ".local");
    add_python_packages(places, "/usr/local");
    add_python_packages(places, "/usr");
    places.push_back(fs::path("/usr/lib") / (machine.arch() + "-linux-gnu"));
    return places;
}

std::string name_of(const Runtime& runtime) {
    return "LibTorch " + runtime.torch.text();
}

// TWINKLE_TORCH may name the LibTorch, or the folder of its libraries.
std::optional<fs::path> named_lib(const Machine& machine) {
    const auto named = machine.environment("TWINKLE_TORCH");
    if (!named || named->empty()) {
        return std::nullopt;
    }
    const fs::path folder = base::absolute_path(*named);
    return is_there(folder / "libtorch.so") ? folder : folder / "lib";
}

fs::path require_named(const fs::path& lib, const Runtime& runtime) {
    const std::string why = mismatch(lib, runtime);
    if (!why.empty()) {
        throw Error(is_there(lib / "libtorch.so") ? ErrorCode::refused : ErrorCode::not_found,
                    {.what = "TWINKLE_TORCH is not the LibTorch of this runtime",
                     .where = base::display_path(lib.parent_path()),
                     .why = why + "; the runtime " + runtime.name + " needs " + name_of(runtime),
                     .hint = "name another LibTorch, or another runtime with TWINKLE_RUNTIME"});
    }
    return lib;
}

}  // namespace

int fit(const Runtime& runtime, const LibTorch& torch) {
    const bool cuda = torch.backend.kind == BackendKind::cuda;
    if ((torch.version && *torch.version != runtime.torch) ||
        (cuda && runtime.backend.kind == BackendKind::rocm)) {
        return 0;
    }
    return runtime.backend == torch.backend                      ? 3
           : cuda == (runtime.backend.kind == BackendKind::cuda) ? 2
                                                                 : 1;
}

Runtime with_libtorch(Runtime runtime, const LibTorch& torch) {
    const bool unsaid = torch.backend.kind == runtime.backend.kind && !torch.backend.version;
    if (runtime.backend.kind != BackendKind::rocm && !unsaid) {
        runtime.backend = torch.backend;
    }
    runtime.torch_lib = torch.lib;
    return runtime;
}

std::vector<LibTorch> libtorches(const Machine& machine) {
    std::vector<LibTorch> found;
    const auto named = named_lib(machine);
    for (const fs::path& place : named ? std::vector{*named} : usual_places(machine)) {
        if (auto torch = read_libtorch(place)) {
            found.push_back(std::move(*torch));
        }
    }
    return found;
}

fs::path find_torch_lib(const Runtime& runtime, const Machine& machine) {
    if (const auto named = named_lib(machine)) {
        return require_named(*named, runtime);
    }
    std::vector<fs::path> places = usual_places(machine);
    if (!runtime.torch_lib.empty()) {
        places.insert(places.begin(), runtime.torch_lib);
    }
    std::vector<std::string> attempts;
    for (const fs::path& place : places) {
        const std::string why = mismatch(place, runtime);
        if (why.empty()) {
            return place;
        }
        attempts.push_back(base::display_path(place) + ": " + why);
    }
    throw Error(ErrorCode::not_found,
                {.what = name_of(runtime) + ", which the runtime " + runtime.name +
                         " was built for, is not found",
                 .where = "",
                 .why = "looked in " + base::join(attempts, "\n         "),
                 .hint = "install it (pip install torch==" + runtime.torch.text() +
                         ".*, or an unpacked libtorch), and name its folder: TWINKLE_TORCH=DIR"});
}

}  // namespace twinkle::target
