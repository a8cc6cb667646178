#include "child/landlock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "base/unique_fd.h"

namespace twinkle::child {
namespace {

// Constants of <linux/landlock.h>; the system's header may be older than its kernel.
#ifdef SYS_landlock_create_ruleset
constexpr long create_ruleset = SYS_landlock_create_ruleset;
constexpr long add_rule = SYS_landlock_add_rule;
constexpr long restrict_self = SYS_landlock_restrict_self;
#else
constexpr long create_ruleset = 444;
constexpr long add_rule = 445;
constexpr long restrict_self = 446;
#endif
constexpr unsigned flag_version = 1;
constexpr int rule_path_beneath = 1;

struct Ruleset {
    std::uint64_t files = 0;
    std::uint64_t network = 0;  // from version 4
    std::uint64_t scoped = 0;   // from version 6
};
struct __attribute__((packed)) PathBeneath {
    std::uint64_t allowed = 0;
    std::int32_t parent = -1;
};

constexpr std::uint64_t write_file = 1U << 1;
constexpr std::uint64_t read_file = 1U << 2;
constexpr std::uint64_t read_folder = 1U << 3;
constexpr std::uint64_t empty_file = 1U << 14;  // needed to open with O_TRUNC
constexpr std::uint64_t control_device = 1U << 15;

// Every right that this version knows: each is denied unless a rule grants it.
std::uint64_t rights(int version) {
    const int count = version >= 5   ? 16  // ioctl on devices
                      : version >= 3 ? 15  // truncate
                      : version >= 2 ? 14  // link and rename to another folder
                                     : 13;
    return (std::uint64_t{1} << count) - 1;
}

std::size_t size_for(int version) {
    return version >= 6 ? sizeof(Ruleset) : version >= 4 ? 16 : 8;
}

void allow(int ruleset, const std::filesystem::path& path, std::uint64_t wanted) {
    const base::UniqueFd file(::open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status{};
    if (!file || ::fstat(file.get(), &status) != 0) {
        return;
    }
    if (!S_ISDIR(status.st_mode)) {
        wanted &= ~read_folder;  // no right to a file, and refused as such
    }
    const PathBeneath rule{.allowed = wanted, .parent = file.get()};
    ::syscall(add_rule, ruleset, rule_path_beneath, &rule, 0);
}

}  // namespace

int landlock_version() {
    const long version = ::syscall(create_ruleset, nullptr, 0, flag_version);
    return version > 0 ? static_cast<int>(version) : 0;
}

bool restrict_files(const FileAccess& access) {
    const int version = landlock_version();
    if (version == 0) {
        return false;
    }
    const Ruleset limits{.files = rights(version), .network = 0b11, .scoped = 0b11};
    const base::UniqueFd ruleset(
        static_cast<int>(::syscall(create_ruleset, &limits, size_for(version), 0)));
    if (!ruleset) {
        return false;
    }
    for (const auto& path : access.readable) {
        allow(ruleset.get(), path, read_file | read_folder);
    }
    for (const auto& path : access.devices) {
        allow(ruleset.get(), path,
              (read_file | read_folder | write_file | empty_file | control_device) & limits.files);
    }
    return ::syscall(restrict_self, ruleset.get(), 0) == 0;
}

}  // namespace twinkle::child
