#include "worker/channel.h"

#include "base/write_all.h"

#include <unistd.h>

namespace twinkle::worker {

using namespace protocol;

void Channel::send(const Event& event) const {
    const std::string text = event_line(event) + "\n";
    if (base::write_all(descriptor_, text) != 0) {
        ::_exit(1);  // nobody listens any more
    }
}

void Channel::stage(const std::string& stage, const std::string& what) const {
    send(StageEvent{stage, what});
}

void Channel::progress(std::size_t done, std::size_t total, const std::string& what) const {
    send(ProgressEvent{done, total, what});
}

void Channel::warning(const std::string& text) const {
    send(LogEvent{.warning = true, .text = text});
}

void Channel::trace(const std::string& text) const {
    send(LogEvent{.warning = false, .text = text});
}

void Channel::result(const base::Json& result) const {
    send(ResultEvent{result});
}

void Channel::error(const Error& error) const {
    send(ErrorEvent{error});
}

}  // namespace twinkle::worker
