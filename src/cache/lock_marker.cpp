#include "cache/lock_marker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/file.h"
#include "base/host_name.h"
#include "base/number.h"
#include "base/stale_file.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "cache/cache_error.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

constexpr std::uint64_t largest_marker = 1024;
// A marker without a process in it: its writer died, or is just about to write.
constexpr time_t nameless_is_stale = 10;
// A process on another machine cannot be checked. Our processes renew their markers.
constexpr time_t foreign_is_stale = 15 * 60;

struct Holder {
    pid_t process = 0;
    std::string host;
};

std::optional<Holder> holder_of(const std::string& text) {
    const auto lines = base::split(text, '\n');
    if (lines.size() < 3 || lines.size() > 4 || !lines.back().empty() || lines[1].empty()) {
        return std::nullopt;
    }
    const auto process = base::parse_number<pid_t>(lines[0]);
    return process && *process > 0 ? std::optional(Holder{*process, lines[1]}) : std::nullopt;
}

std::optional<std::string> read_marker(const base::Folder& folder, const fs::path& path) {
    try {
        return base::read_file(folder.open(path, O_RDONLY | O_NONBLOCK), path, "lock",
                               largest_marker);
    } catch (const Error&) {
        return std::nullopt;
    }
}

bool is_stale(const std::string& text, const struct stat& info) {
    const time_t age = ::time(nullptr) - info.st_mtime;
    const auto holder = holder_of(text);
    if (!holder) {
        return age > nameless_is_stale;
    }
    if (holder->host == base::host_name()) {
        return base::is_gone(holder->process);
    }
    return age > foreign_is_stale;
}

void break_stale(const base::Folder& folder, const fs::path& path) {
    struct stat judged{};
    const auto text = read_marker(folder, path);
    if (text && folder.lstat(path, judged) == 0 && is_stale(*text, judged)) {
        base::unlink_same(folder, path, judged);
    }
}

}  // namespace

bool create_marker(const Cache& cache, const fs::path& path) {
    const base::Folder& folder = cache.folder();
    for (int attempt = 0; attempt < 3; ++attempt) {
        const base::UniqueFd fd = folder.open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (fd) {
            const std::string text = fmt::format("{}\n{}\n", ::getpid(), base::host_name());
            if (const int error = base::write_all(fd.get(), text); error != 0) {
                folder.unlink(path);
                throw_cache_error(cache, path, error);
            }
            return true;
        }
        if (errno == ENOENT) {
            if (folder.make_folders(path.parent_path()) != 0) {
                throw_cache_error(cache, path, errno);
            }
        } else if (errno == EEXIST) {
            break_stale(folder, path);
        } else {
            throw_cache_error(cache, path, errno);
        }
    }
    return false;
}

void remove_own_marker(const base::Folder& folder, const fs::path& path) {
    const auto text = read_marker(folder, path);
    const auto holder = text ? holder_of(*text) : std::nullopt;
    if (holder && holder->process == ::getpid() && holder->host == base::host_name()) {
        folder.unlink(path);
    }
}

std::string marker_holder(const base::Folder& folder, const fs::path& path) {
    const auto text = read_marker(folder, path);
    const auto holder = text ? holder_of(*text) : std::nullopt;
    if (!holder) {
        return "";
    }
    const std::string process = "process " + std::to_string(holder->process);
    const std::string host = holder->host.substr(0, holder->host.find('?'));
    return holder->host == base::host_name() ? process : process + " on " + base::printable(host);
}

// /proc/locks: "1: FLOCK  ADVISORY  WRITE 4711 fe:00:123456 0 EOF"
std::string flock_holder(const base::Folder& folder, const fs::path& path) {
    struct stat info{};
    if (folder.lstat(path, info) != 0) {
        return "";
    }
    const std::string file =
        fmt::format("{:02x}:{:02x}:{}", major(info.st_dev), minor(info.st_dev), info.st_ino);
    std::string table;
    try {
        base::stream_file("/proc/locks", "list of locks",
                          [&](std::string_view bytes) { table.append(bytes); });
    } catch (const Error&) {
        return "";
    }
    for (const std::string& line : base::split(table, '\n')) {
        std::vector<std::string> words = base::split(line, ' ');
        std::erase(words, "");
        if (words.size() > 5 && words[1] == "FLOCK" && words[5] == file && words[4] != "0" &&
            words[4] != "-1") {
            return "process " + words[4];
        }
    }
    return "";
}

}  // namespace twinkle::cache
