#include "cache/layout.h"

#include <algorithm>

#include "base/hex.h"
#include "base/text.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

constexpr std::string_view folder_prefix = "kernels--";
constexpr std::size_t longest_name = 255;   // limit of file systems
constexpr std::size_t longest_path = 2048;  // far above what any repository has

bool is_hash(std::string_view text) {
    return base::is_hex(text, 40) || base::is_hex(text, 64);
}

// One half of "org/name".
bool is_repository_part(std::string_view text) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
    };
    return !text.empty() && text.size() <= 96 && text.front() != '.' && text.front() != '-' &&
           text.back() != '.' && text.back() != '-' && text.find("--") == std::string_view::npos &&
           text.find("..") == std::string_view::npos &&
           std::all_of(text.begin(), text.end(), allowed);
}

[[noreturn]] void refuse(std::string_view what, std::string_view name, std::string why) {
    throw Error(ErrorCode::malformed,
                {.what = base::printable(name) + " is no " + std::string(what),
                 .where = "",
                 .why = std::move(why),
                 .hint = ""});
}

std::string_view checked_hash(std::string_view what, std::string_view text) {
    if (!is_hash(text)) {
        refuse(what, text, "40 or 64 hex digits in lower case were expected");
    }
    return text;
}

std::string_view checked_path(std::string_view what, std::string_view text) {
    if (!is_safe_path(text)) {
        refuse(what, text, "it would lead out of its folder, or holds what a name cannot hold");
    }
    return text;
}

std::optional<std::string> non_empty(const target::Machine& machine, const std::string& name) {
    auto value = machine.environment(name);
    return value && !value->empty() ? std::move(value) : std::nullopt;
}

// Expands `~`, `$NAME` and `${NAME}` as huggingface_hub does; unset variables stay as they are.
fs::path expanded(const target::Machine& machine, const std::string& text) {
    std::string result;
    std::size_t at = 0;
    if (text.front() == '~' && (text.size() == 1 || text[1] == '/')) {
        result = machine.home().string();
        at = 1;
    }
    const auto is_name = [](char c) {
        return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
               (c >= 'A' && c <= 'Z');
    };
    while (at < text.size()) {
        const bool braces = text.compare(at, 2, "${") == 0;
        const std::size_t begin = at + (braces ? 2 : 1);
        std::size_t end = begin;
        while (text[at] == '$' && end < text.size() && is_name(text[end])) {
            ++end;
        }
        const bool named = end > begin && (!braces || (end < text.size() && text[end] == '}'));
        const auto value = named ? machine.environment(text.substr(begin, end - begin))
                                 : std::optional<std::string>();
        if (value) {
            result += *value;
            at = end + (braces ? 1 : 0);
        } else {
            result += text[at++];
        }
    }
    return result;
}

}  // namespace

fs::path cache_folder(const target::Machine& machine) {
    if (const auto folder = non_empty(machine, "KERNELS_CACHE")) {
        return *folder;
    }
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
        if (const auto folder = non_empty(machine, name)) {
            return expanded(machine, *folder);
        }
    }
    if (const auto home = non_empty(machine, "HF_HOME")) {
        return expanded(machine, *home) / "hub";
    }
    const auto cache = non_empty(machine, "XDG_CACHE_HOME");
    const fs::path folder = cache ? expanded(machine, *cache) : machine.home() / ".cache";
    return folder / "huggingface" / "hub";
}

bool is_repository_id(std::string_view text) {
    const auto slash = text.find('/');
    return slash != std::string_view::npos && is_repository_part(text.substr(0, slash)) &&
           is_repository_part(text.substr(slash + 1));
}

std::string repository_folder(std::string_view repo_id) {
    const auto slash = repo_id.find('/');
    if (!is_repository_id(repo_id) && !is_repository_part(repo_id)) {
        refuse("repository", repo_id, "a repository is named organisation/name");
    }
    std::string folder(folder_prefix);
    if (slash == std::string_view::npos) {
        return folder.append(repo_id);
    }
    return folder.append(repo_id.substr(0, slash)).append("--").append(repo_id.substr(slash + 1));
}

std::optional<std::string> repository_of(std::string_view folder_name) {
    if (folder_name.substr(0, folder_prefix.size()) != folder_prefix) {
        return std::nullopt;
    }
    std::string repo_id(folder_name.substr(folder_prefix.size()));
    if (const auto separator = repo_id.find("--"); separator != std::string::npos) {
        repo_id.replace(separator, 2, "/");
    }
    const auto slash = repo_id.find('/');
    const bool fits = is_repository_part(std::string_view(repo_id).substr(0, slash)) &&
                      (slash == std::string::npos ||
                       is_repository_part(std::string_view(repo_id).substr(slash + 1)));
    return fits ? std::optional(std::move(repo_id)) : std::nullopt;
}

bool is_commit(std::string_view text) {
    return is_hash(text);
}

bool is_etag(std::string_view text) {
    return is_hash(text);
}

bool is_safe_path(std::string_view path) {
    if (path.empty() || path.size() > longest_path) {
        return false;
    }
    const auto is_control = [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    };
    if (std::any_of(path.begin(), path.end(), is_control)) {
        return false;
    }
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find('/', begin), path.size());
        const std::string_view part = path.substr(begin, end - begin);
        if (part.empty() || part == "." || part == ".." || part.size() > longest_name) {
            return false;
        }
        begin = end + 1;
    }
    return true;
}

Cache::Cache(fs::path root, CacheOptions options) : folder_(std::move(root)), options_(options) {}

std::optional<fs::path> Cache::link_target(const fs::path& link) const {
    const fs::path target = folder().read_link(link).value_or("/");
    if (target.is_absolute()) {
        return std::nullopt;
    }
    const fs::path from = link.lexically_relative(root()).parent_path();
    fs::path full = (from / target).lexically_normal();
    return *full.begin() == ".." ? std::nullopt : std::optional(std::move(full));
}

fs::path Cache::repository(std::string_view repo_id) const {
    return root() / repository_folder(repo_id);
}

fs::path Cache::blobs(std::string_view repo_id) const {
    return repository(repo_id) / "blobs";
}

fs::path Cache::blob(std::string_view repo_id, std::string_view etag) const {
    return blobs(repo_id) / checked_hash("name of a blob", etag);
}

fs::path Cache::snapshot(std::string_view repo_id, std::string_view commit) const {
    return repository(repo_id) / "snapshots" / checked_hash("commit", commit);
}

fs::path Cache::file(std::string_view repo_id, std::string_view commit,
                     std::string_view path) const {
    return snapshot(repo_id, commit) / checked_path("path in a repository", path);
}

fs::path Cache::ref_file(std::string_view repo_id, std::string_view ref) const {
    return repository(repo_id) / "refs" / checked_path("branch or tag", ref);
}

fs::path Cache::tree_file(std::string_view repo_id, std::string_view commit) const {
    std::string name(checked_hash("commit", commit));
    return repository(repo_id) / "trees" / (name + ".json");
}

fs::path Cache::lock_file(std::string_view repo_id, std::string_view etag) const {
    std::string name(checked_hash("name of a blob", etag));
    return root() / ".locks" / repository_folder(repo_id) / (name + ".lock");
}

Cache cache_of(const target::Machine& machine) {
    CacheOptions options;
    options.symlinks =
        !target::is_true(machine.environment("HF_HUB_DISABLE_SYMLINKS").value_or(""));
    return Cache(cache_folder(machine), options);
}

}  // namespace twinkle::cache
