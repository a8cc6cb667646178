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

// "2.13.0+cpu" from a file of unpacked archives (build-version) or wheels (version.py); empty:
// neither exists.
std::string version_in(const fs::path& torch) {
    constexpr std::uint64_t small = 64u << 10;
    if (is_there(torch / "build-version")) {
        const std::string text = base::read_file(torch / "build-version", "version", small);
        return text.substr(0, text.find_first_of(" \r\n"));
    }
    if (!is_there(torch / "version.py")) {
        return "";
    }
    const std::string text = base::read_file(torch / "version.py", "version", small);
    const auto line = text.find("__version__ = '");
    const auto begin = line == std::string::npos ? line : text.find('\'', line) + 1;
    return begin == std::string::npos ? "" : text.substr(begin, text.find('\'', begin) - begin);
}

// Why the LibTorch in `lib` is not the one that the runtime was built for; empty: it
// is.
std::string mismatch(const fs::path& lib, const Runtime& runtime) {
    if (!is_there(lib / "libtorch.so")) {
        return "there is no libtorch.so";
    }
    const bool cuda = is_there(lib / "libtorch_cuda.so");
    if (cuda != (runtime.backend.kind == BackendKind::cuda)) {
        return cuda ? "it is a build for CUDA" : "it is no build for " + runtime.backend.text();
    }
    const std::string text = version_in(lib.parent_path());
    const auto version = parse_version(text);
    if (version && *version != runtime.torch) {
        return "it is LibTorch " + base::printable(text);
    }
    return "";
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

std::vector<fs::path> usual_places(const Runtime& runtime, const Machine& machine) {
    std::vector<fs::path> places;
    if (!runtime.torch_lib.empty()) {
        places.push_back(runtime.torch_lib);
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
    if (const auto home = machine.environment("HOME"); home && !home->empty()) {
        add_python_packages(places, fs::path(*home) / ".local");
    }
    add_python_packages(places, "/usr/local");
    add_python_packages(places, "/usr");
    places.push_back(fs::path("/usr/lib") / (machine.arch() + "-linux-gnu"));
    return places;
}

std::string name_of(const Runtime& runtime) {
    return "LibTorch " + runtime.torch.text() + " (" + runtime.backend.text() + ")";
}

fs::path named_place(const std::string& text, const Runtime& runtime) {
    const fs::path folder = base::absolute_path(text);
    const fs::path lib = is_there(folder / "libtorch.so") ? folder : folder / "lib";
    const std::string why = mismatch(lib, runtime);
    if (!why.empty()) {
        throw Error(is_there(lib / "libtorch.so") ? ErrorCode::refused : ErrorCode::not_found,
                    {.what = "TWINKLE_TORCH is not the LibTorch of this runtime",
                     .where = base::display_path(folder),
                     .why = why + "; the runtime " + runtime.name + " needs " + name_of(runtime),
                     .hint = "name another LibTorch, or another runtime with TWINKLE_RUNTIME"});
    }
    return lib;
}

}  // namespace

fs::path find_torch_lib(const Runtime& runtime, const Machine& machine) {
    const auto named = machine.environment("TWINKLE_TORCH");
    if (named && !named->empty()) {
        return named_place(*named, runtime);
    }
    std::vector<std::string> attempts;
    for (const fs::path& place : usual_places(runtime, machine)) {
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
