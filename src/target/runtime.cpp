#include "target/runtime.h"

#include <algorithm>
#include <tuple>

#include "base/document.h"
#include "base/file.h"
#include "base/text.h"
#include "target/torch_place.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::target {
namespace {

Runtime read_runtime(const fs::path& file) {
    const std::string origin = base::display_path(file);
    const base::Node root = base::parse_json_document(
        base::read_file(file, "description of a runtime", 1u << 20), origin);
    base::TableReader reader(root, origin, "the description of a runtime");
    const base::Node& schema = reader.require("schema");
    if (reader.as_string(schema, "schema") != "twinkle.runtime/1") {
        reader.fail(schema, "its schema is not \"twinkle.runtime/1\"",
                    "build twinkle and its runtime from the same sources");
    }
    Runtime runtime;
    runtime.folder = file.parent_path();
    runtime.name = runtime.folder.filename().string();
    runtime.torch_version = reader.required_string("torch");
    const auto version = parse_version(runtime.torch_version);
    if (!version) {
        reader.fail(reader.require("torch"), "it is no version of LibTorch");
    }
    runtime.torch = *version;
    const auto backend = parse_backend(reader.required_string("backend"));
    if (!backend) {
        reader.fail(reader.require("backend"), "it is no backend");
    }
    runtime.backend = *backend;
    runtime.cxx11 = reader.boolean("cxx11").value_or(true);
    if (const auto lib = reader.string("torch_lib"); lib && !lib->empty()) {
        runtime.torch_lib = runtime.folder / *lib;
    }
    runtime.worker = runtime.folder / reader.required_string("worker");
    runtime.library = runtime.folder / reader.required_string("library");
    return runtime;
}

fs::path relative_to_executable(const Machine& machine, const char* path) {
    return (machine.executable().parent_path().parent_path() / path).lexically_normal();
}

// The best of `runtimes` for a LibTorch; none serves it: none.
std::optional<Runtime> best_for(const std::vector<Runtime>& runtimes, const LibTorch& torch) {
    const auto best = std::max_element(
        runtimes.begin(), runtimes.end(),
        [&](const Runtime& a, const Runtime& b) { return fit(a, torch) < fit(b, torch); });
    return best == runtimes.end() || fit(*best, torch) == 0
               ? std::nullopt
               : std::optional(with_libtorch(*best, torch));
}

// The best of `runtimes`, of which there are some, for the LibTorch that is here.
Runtime choose_of(const std::vector<Runtime>& runtimes, const Machine& machine) {
    if (machine.environment("TWINKLE_TORCH").value_or("").empty()) {
        for (const Runtime& runtime : runtimes) {
            const auto built_with =
                runtime.torch_lib.empty() ? std::nullopt : read_libtorch(runtime.torch_lib);
            if (built_with && fit(runtime, *built_with) > 0) {
                return with_libtorch(runtime, *built_with);
            }
        }
    }
    for (const LibTorch& torch : libtorches(machine)) {
        if (const auto best = best_for(runtimes, torch)) {
            return *best;
        }
    }
    return runtimes.front();
}

}  // namespace

Installation installation(const Machine& machine) {
    const auto libexec = machine.environment("TWINKLE_LIBEXEC");
    return {libexec && !libexec->empty() ? fs::path(*libexec)
                                         : relative_to_executable(machine, "libexec/twinkle"),
            relative_to_executable(machine, "lib/twinkle/kernels"),
            relative_to_executable(machine, "share/twinkle/presets")};
}

std::vector<Runtime> find_runtimes(const fs::path& libexec, const Machine& machine) {
    std::vector<Runtime> found;
    std::error_code error;
    for (fs::directory_iterator entry(libexec, error), end; !error && entry != end;
         entry.increment(error)) {
        const fs::path file = entry->path() / "runtime.json";
        if (fs::exists(file)) {
            found.push_back(read_runtime(file));
        }
    }
    const bool cuda = found.size() > 1 && machine.may_have_cuda();
    const bool rocm = found.size() > 1 && !machine.rocm_gpus().empty();
    const auto serves = [&](const Runtime& runtime) {
        switch (runtime.backend.kind) {
            case BackendKind::cpu: return 1;
            case BackendKind::cuda: return cuda ? 2 : 0;
            case BackendKind::rocm: return rocm ? 2 : 0;
            default: return 0;
        }
    };
    const auto rank = [&](const Runtime& runtime) {
        return std::make_tuple(runtime.torch, serves(runtime),
                               runtime.backend.version.value_or(Version{}));
    };
    std::sort(found.begin(), found.end(), [&](const Runtime& a, const Runtime& b) {
        return rank(a) != rank(b) ? rank(a) > rank(b) : a.name < b.name;
    });
    return found;
}

std::optional<Runtime> choose_runtime(const Machine& machine) {
    const fs::path libexec = installation(machine).libexec;
    const auto runtimes = find_runtimes(libexec, machine);
    const auto wanted = machine.environment("TWINKLE_RUNTIME");
    if (!wanted || wanted->empty()) {
        return runtimes.empty() ? std::nullopt : std::optional(choose_of(runtimes, machine));
    }
    std::vector<std::string> names;
    for (const Runtime& runtime : runtimes) {
        if (runtime.name == *wanted) {
            return choose_of({runtime}, machine);
        }
        names.push_back(runtime.name);
    }
    throw Error(
        ErrorCode::not_found,
        {.what = "TWINKLE_RUNTIME names a runtime that is not there: " + base::printable(*wanted),
         .where = base::display_path(libexec),
         .why = names.empty() ? "there is none" : "there are: " + base::join(names, ", "),
         .hint = "unset TWINKLE_RUNTIME to use the one that fits LibTorch"});
}

}  // namespace twinkle::target
