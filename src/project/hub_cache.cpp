#include "project/hub_cache.h"

#include "base/file.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

bool is_commit(std::string_view text) {
    return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// The name of the ref that a pin asks for. Ranges of releases need the list of tags, which only the
// Hub has; an exact release is a tag.
std::optional<std::string> ref_of(const Pin& pin) {
    if (pin.version) {
        return "v" + std::to_string(*pin.version);
    }
    if (!pin.specifier.empty()) {
        const bool exact =
            pin.specifier.find_first_not_of("0123456789.abrcdevpost") == std::string::npos;
        return exact ? std::optional("v" + pin.specifier) : std::nullopt;
    }
    return pin.revision.empty() ? "main" : pin.revision;
}

std::optional<std::string> commit_of(const fs::path& repository, const std::string& ref) {
    std::error_code error;
    const fs::path file = repository / "refs" / ref;
    if (fs::is_regular_file(file, error)) {
        const std::string text = base::read_file(file, "ref in the cache", 4096);
        const std::string commit = text.substr(0, text.find_last_not_of(" \n\r\t") + 1);
        return is_commit(commit) ? std::optional(commit) : std::nullopt;
    }
    return is_commit(ref) ? std::optional(ref) : std::nullopt;
}

}  // namespace

fs::path hub_cache_folder(const target::Machine& machine) {
    const auto given = [&](const char* name) -> std::optional<fs::path> {
        const auto value = machine.environment(name);
        return value && !value->empty() ? std::optional<fs::path>(*value) : std::nullopt;
    };
    for (const char* name : {"KERNELS_CACHE", "HF_HUB_CACHE"}) {
        if (const auto folder = given(name)) {
            return *folder;
        }
    }
    if (const auto home = given("HF_HOME")) {
        return *home / "hub";
    }
    const auto cache = given("XDG_CACHE_HOME");
    return (cache ? *cache : given("HOME").value_or("/") / ".cache") / "huggingface" / "hub";
}

std::optional<Snapshot> find_snapshot(const fs::path& cache, const std::string& repo_id,
                                      const Pin& pin) {
    const auto slash = repo_id.find('/');
    const fs::path repository =
        cache / ("kernels--" + repo_id.substr(0, slash) + "--" + repo_id.substr(slash + 1));
    const auto ref = ref_of(pin);
    const auto commit = ref ? commit_of(repository, *ref) : std::nullopt;
    std::error_code error;
    if (!commit || !fs::is_directory(repository / "snapshots" / *commit, error)) {
        return std::nullopt;
    }
    return Snapshot{*commit, repository / "snapshots" / *commit};
}

}  // namespace twinkle::project
