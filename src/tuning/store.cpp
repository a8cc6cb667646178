#include "tuning/store.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/hex.h"
#include "base/io_error.h"
#include "target/user_cache.h"
#include "tuning/json_reading.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::tuning {
namespace {

constexpr std::size_t environment_digits = 16;
constexpr std::size_t name_digits = 32;
constexpr std::size_t most_candidates = 1000;  // of one invocation
constexpr const char* extension = ".json";
constexpr const char* lease_name = "lease";

std::string short_name(const Invocation& invocation) {
    return invocation.hash().substr(0, name_digits);
}

bool is_entry_name(const fs::path& file) {
    return file.extension() == extension && base::is_hex(file.stem().string(), name_digits);
}

// Left by a process that was killed while it wrote.
bool is_left_over(const fs::path& file) {
    return file.filename().string().starts_with('.') && file.extension() == ".tmp";
}

Rejected rejected_by(int error_number) {
    const Miss miss = error_number == ENOENT  ? Miss::absent
                      : error_number == ELOOP ? Miss::link
                                              : Miss::unreadable;
    return {miss, base::io_reason(error_number)};
}

std::vector<base::Folder::Entry> sorted_entries(const base::Folder& folder, const fs::path& path) {
    auto entries = folder.entries(path);
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return entries;
}

}  // namespace

Store::Store(const fs::path& root, Clock clock)
    : folder_(root), versioned_(root / "v1"), clock_(std::move(clock)) {}

fs::path Store::usual_place(const target::Machine& machine) {
    return target::user_cache(machine) / "tuning";
}

fs::path Store::folder_of(const std::string& environment, const Invocation& invocation) const {
    return versioned_ / environment / short_name(invocation);
}

std::optional<Entry> Store::read(const fs::path& file, Rejected& rejected) const {
    base::UniqueFd fd = folder_.open(file, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    struct stat info{};
    if (!fd || ::fstat(fd.get(), &info) != 0) {
        rejected = rejected_by(errno);
        return std::nullopt;
    }
    if (!S_ISREG(info.st_mode)) {
        rejected = {Miss::damaged, "it is no regular file"};
        return std::nullopt;
    }
    if (static_cast<std::uint64_t>(info.st_size) > entry_limits.bytes) {
        rejected = {Miss::too_large, "it is larger than an entry can be"};
        return std::nullopt;
    }
    std::string text;
    try {
        text = base::read_file(std::move(fd), file, "measurement", entry_limits.bytes);
    } catch (const Error& error) {
        rejected = {Miss::unreadable, error.details().why};
        return std::nullopt;
    }
    auto entry = read_entry_file(text, file.filename().string(), rejected);
    const fs::path folder = file.parent_path();
    if (entry && (folder_of(entry->environment.id(), entry->invocation) != folder ||
                  entry->candidate.id() + extension != file.filename())) {
        rejected = {Miss::wrong_key,
                    "it is of another device, invocation or candidate than its name says"};
        return std::nullopt;
    }
    return entry;
}

void Store::read_into(const fs::path& folder, Found& found) const {
    if (const auto link = folder_.find_link(folder)) {
        found.rejected.push_back({*link, rejected_by(ELOOP)});
        return;
    }
    std::size_t read_files = 0;
    for (const auto& file : sorted_entries(folder_, folder)) {
        if (!is_entry_name(file.path) || ++read_files > most_candidates) {
            continue;
        }
        Rejected rejected;
        if (auto entry = read(file.path, rejected)) {
            found.entries.push_back(std::move(*entry));
        } else if (rejected.miss != Miss::absent) {  // gone since
            found.rejected.push_back({file.path, std::move(rejected)});
        }
    }
}

Store::Found Store::find(const Environment& environment, const Invocation& invocation) const {
    Found found;
    read_into(folder_of(environment.id(), invocation), found);
    return found;
}

Store::Found Store::all() const {
    Found found;
    if (const auto link = folder_.find_link(versioned_)) {
        found.rejected.push_back({*link, rejected_by(ELOOP)});
        return found;
    }
    for (const auto& environment : sorted_entries(folder_, versioned_)) {
        if (!base::is_hex(environment.path.filename().string(), environment_digits)) {
            continue;
        }
        if (S_ISLNK(environment.kind)) {
            found.rejected.push_back({environment.path, rejected_by(ELOOP)});
            continue;
        }
        for (const auto& invocation : sorted_entries(folder_, environment.path)) {
            if (base::is_hex(invocation.path.filename().string(), name_digits)) {
                read_into(invocation.path, found);
            }
        }
    }
    return found;
}

std::string Store::put(const Entry& entry) const {
    const fs::path folder = folder_of(entry.environment.id(), entry.invocation);
    const fs::path file = folder / (entry.candidate.id() + extension);
    const std::string text = entry_file(entry);
    if (text.size() > entry_limits.bytes) {
        return "its invocation is too large";
    }
    if (folder_.make_folders(folder) != 0) {
        return base::io_reason(errno);
    }
    Rejected rejected;
    const auto there = read(file, rejected);
    if (there && !is_better_measured(entry, *there)) {
        return "";
    }
    if (!there && (rejected.miss == Miss::link || rejected.miss == Miss::other_version)) {
        return rejected.why;
    }
    return folder_.write_file(file, text) == 0 ? "" : base::io_reason(errno);
}

LeaseAttempt Store::lease(const Environment& environment, const Invocation& invocation,
                          std::chrono::seconds duration) const {
    return take_lease(folder_, folder_of(environment.id(), invocation) / lease_name, duration,
                      clock_);
}

Store::Cleared Store::clear() const {
    Cleared cleared;
    const auto remove = [&](const base::Folder::Entry& file) {
        const bool entry = is_entry_name(file.path);
        if (!S_ISREG(file.kind)) {
            return;
        }
        if (!entry && !is_left_over(file.path) && file.path.filename() != lease_name) {
            return;
        }
        if (folder_.unlink(file.path) == 0) {
            cleared.entries += entry ? 1 : 0;
        } else if (errno != ENOENT) {
            cleared.problem = base::io_reason(errno);
        }
    };
    for (const auto& environment : folder_.entries(versioned_)) {
        for (const auto& invocation : folder_.entries(environment.path)) {
            for (const auto& file : folder_.entries(invocation.path)) {
                remove(file);
            }
            folder_.rmdir(invocation.path);  // stays where something else is in it
        }
        folder_.rmdir(environment.path);
    }
    folder_.rmdir(versioned_);
    return cleared;
}

}  // namespace twinkle::tuning
