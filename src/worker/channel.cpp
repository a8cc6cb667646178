#include "worker/channel.h"

#include "base/write_all.h"
#include "protocol/error_json.h"

#include <unistd.h>

namespace twinkle::worker {

using base::Json;

void Channel::send(const Json& line) const {
    const std::string text = base::json_line(line) + "\n";
    if (base::write_all(descriptor_, text) != 0) {
        ::_exit(1);  // nobody listens any more
    }
}

void Channel::stage(const std::string& stage, const std::string& what) const {
    send({{"event", "stage"}, {"stage", stage}, {"what", what}});
}

void Channel::progress(std::size_t done, std::size_t total, const std::string& what) const {
    send({{"event", "progress"}, {"done", done}, {"total", total}, {"what", what}});
}

void Channel::warning(const std::string& text) const {
    send({{"event", "log"}, {"level", "warning"}, {"text", text}});
}

void Channel::trace(const std::string& text) const {
    send({{"event", "log"}, {"level", "trace"}, {"text", text}});
}

void Channel::result(const Json& result) const {
    send({{"result", result}});
}

void Channel::error(const Error& error) const {
    send({{"error", protocol::to_json(error)}});
}

}  // namespace twinkle::worker
