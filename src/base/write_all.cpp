#include "base/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace twinkle::base {

int write_all(int descriptor, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
        if (written > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(written));
        } else if (written == 0) {
            return ENOSPC;  // nothing fits, and nothing says why: not to be tried for ever
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

}  // namespace twinkle::base
