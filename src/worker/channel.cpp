#include "worker/channel.h"

#include <unistd.h>

#include <cerrno>

namespace twinkle::worker {

using base::Json;

void Channel::send(const Json& line) const {
    const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    std::string_view rest = text;
    while (!rest.empty()) {
        const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
        if (written < 0 && errno != EINTR) {
            ::_exit(1);  // nobody listens any more
        }
        rest.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
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
    const ErrorDetails& details = error.details();
    send({{"error",
           {{"code", error_code_name(error.code())},
            {"exit", error.exit_code()},
            {"what", details.what},
            {"where", details.where},
            {"why", details.why},
            {"hint", details.hint}}}});
}

}  // namespace twinkle::worker
