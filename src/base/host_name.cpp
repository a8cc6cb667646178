#include "base/host_name.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace twinkle::base {

std::string host_name() {
    constexpr ino_t first_pid_namespace = 0xEFFFFFFC;
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    std::string host;
    for (const char* c = name.data(); *c != '\0'; ++c) {
        const auto byte = static_cast<unsigned char>(*c);
        host += byte > 0x20 && byte < 0x7f && byte != '?' ? std::string(1, *c)
                                                          : fmt::format("?{:02x}", byte);
    }
    struct stat info{};
    if (::stat("/proc/self/ns/pid", &info) == 0 && info.st_ino != first_pid_namespace) {
        host += fmt::format("?pidns-{:x}", info.st_ino);
    }
    return host.empty() ? "?" : host;
}

bool is_gone(int process) {
    return ::kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace twinkle::base
