#include "child/line_reader.h"

#include <unistd.h>

#include <cerrno>

namespace twinkle::child {

LineReader::State LineReader::read(int descriptor) {
    char buffer[65536];
    const ssize_t size = ::read(descriptor, buffer, sizeof buffer);
    if (size < 0) {
        return errno == EINTR || errno == EAGAIN ? State::open : State::ended;
    }
    if (size == 0) {
        return State::ended;
    }
    total_ += static_cast<std::size_t>(size);
    if (total_ > most_) {
        return State::too_much;
    }
    pending_.append(buffer, static_cast<std::size_t>(size));
    std::size_t begin = 0;
    for (auto end = pending_.find('\n'); end != std::string::npos;
         end = pending_.find('\n', begin)) {
        receive_(std::string_view(pending_).substr(begin, end - begin));
        begin = end + 1;
    }
    pending_.erase(0, begin);
    return pending_.size() > longest_ ? State::too_long : State::open;
}

}  // namespace twinkle::child
