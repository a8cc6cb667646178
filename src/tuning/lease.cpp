#include "tuning/lease.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/host_name.h"
#include "base/io_error.h"
#include "base/stale_file.h"
#include "base/text.h"
#include "base/write_all.h"
#include "tuning/json_reading.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::tuning {
namespace {

constexpr base::JsonLimits lease_limits{.bytes = 4096, .depth = 2};
// A lease that says nothing: its writer died, or is just about to write.
constexpr std::int64_t silent_is_stale = 10;

struct Holder {
    std::int64_t taken = 0;  // seconds since 1970, as is the deadline
    std::int64_t deadline = 0;
    std::int64_t process = 0;
    std::string host;
};

std::int64_t seconds(const Clock& clock) {
    return std::chrono::duration_cast<std::chrono::seconds>(clock().time_since_epoch()).count();
}

std::string text_of(const Holder& holder) {
    return base::json_line({{"taken", holder.taken},
                            {"deadline", holder.deadline},
                            {"process", holder.process},
                            {"host", holder.host}});
}

std::optional<std::string> read_text(const base::Folder& folder, const fs::path& file) {
    try {
        return base::read_file(folder.open(file, O_RDONLY | O_NONBLOCK), file, "lease",
                               lease_limits.bytes);
    } catch (const Error&) {
        return std::nullopt;
    }
}

std::optional<Holder> holder_of(const std::string& text) {
    try {
        const base::Node root = base::parse_json_document(text, "lease", lease_limits);
        base::TableReader reader(root, "lease", "a lease");
        Holder holder{required_count(reader, "taken"), required_count(reader, "deadline"),
                      required_count(reader, "process"), reader.required_string("host")};
        return holder.process > 0 && holder.process <= INT32_MAX ? std::optional(holder)
                                                                 : std::nullopt;
    } catch (const Error&) {
        return std::nullopt;
    }
}

// Judged by the wall clock. If it was set back, a lease may appear to lie in the future, and is
// stale too.
bool is_stale(const std::optional<Holder>& holder, std::int64_t written, std::int64_t now) {
    if (!holder) {
        return now - written > silent_is_stale || written - now > longest_lease.count();
    }
    const bool gone =
        holder->host == base::host_name() && base::is_gone(static_cast<int>(holder->process));
    return gone || holder->deadline <= now || holder->deadline - longest_lease.count() > now;
}

std::string shown(const Holder& holder) {
    const std::string process = "process " + std::to_string(holder.process);
    const std::string host = holder.host.substr(0, holder.host.find('?'));
    return holder.host == base::host_name() ? process : process + " on " + base::printable(host);
}

// Takes a stale one away. Else who holds it; "": nobody any more.
std::string break_stale(const base::Folder& folder, const fs::path& file, std::int64_t now) {
    struct stat judged{};
    if (folder.lstat(file, judged) != 0) {
        return "";
    }
    const auto text = read_text(folder, file);
    const auto holder = text ? holder_of(*text) : std::nullopt;
    if (is_stale(holder, judged.st_mtime, now)) {
        base::unlink_same(folder, file, judged);
        return "";
    }
    return holder ? shown(*holder) : "another process";
}

}  // namespace

Clock system_clock() {
    return [] { return std::chrono::system_clock::now(); };
}

void Lease::give_back() {
    if (!file_.empty() && read_text(folder_, file_) == text_) {
        folder_.unlink(file_);
    }
    file_.clear();
}

LeaseAttempt take_lease(const base::Folder& folder, const fs::path& file,
                        std::chrono::seconds duration, const Clock& clock) {
    if (folder.make_folders(file.parent_path()) != 0) {
        return {.problem = base::io_reason(errno)};
    }
    const std::int64_t now = seconds(clock);
    const std::string text =
        text_of({now, now + std::clamp<std::int64_t>(duration.count(), 1, longest_lease.count()),
                 ::getpid(), base::host_name()});
    for (int attempt = 0; attempt < 3; ++attempt) {
        const base::UniqueFd fd = folder.open(file, O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (fd) {
            if (const int error = base::write_all(fd.get(), text); error != 0) {
                folder.unlink(file);
                return {.problem = base::io_reason(error)};
            }
            return {.lease = Lease(folder, file, text)};
        }
        if (errno != EEXIST) {
            return {.problem = base::io_reason(errno)};
        }
        if (auto holder = break_stale(folder, file, now); !holder.empty()) {
            return {.holder = std::move(holder)};
        }
    }
    return {.holder = "another process"};
}

}  // namespace twinkle::tuning
