#pragma once
// The worker's output, line by line. Foreign kernels run in the worker, so its output may be
// malformed or endless.

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/process.h"
#include "cli/console.h"
#include "protocol/event.h"

namespace twinkle::cli {

class WorkerConversation {
public:
    explicit WorkerConversation(Console& console) : console_(console) {}

    // Takes bytes as they arrive. Throws Error if they violate the protocol.
    void receive(base::Channel channel, std::string_view bytes);
    bool finished() const { return result_ || error_; }

    // Call after the worker's end: its result, or the Error that its end means.
    base::Json conclude(const base::ExitStatus& status);

private:
    void event_line(std::string_view line);
    protocol::Event event_of(std::string_view line) const;
    void take(const protocol::StageEvent& event);
    void take(const protocol::ProgressEvent& event);
    void take(const protocol::LogEvent& event);
    void take(const protocol::ResultEvent& event);
    void take(const protocol::ErrorEvent& event);
    void speech_line(std::string_view line);
    [[noreturn]] void blame(const std::string& happened, const std::string& why) const;
    [[noreturn]] void not_the_protocol(const std::string& why) const;

    Console& console_;
    std::string events_;  // an unfinished line of the protocol
    std::string speech_;  // an unfinished line of its stdout and stderr
    std::string last_words_;
    std::string stage_ = "start";
    std::string what_;
    std::optional<base::Json> result_;
    std::optional<Error> error_;
};

}  // namespace twinkle::cli
