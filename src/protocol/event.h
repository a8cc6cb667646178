#pragma once
// What the worker tells the command line: one JSON object a line; events during the work, and a
// result or an error at its end.

#include "base/json.h"
#include "twinkle/error.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace twinkle::protocol {

inline constexpr std::size_t longest_event = 64u << 20;  // the report of a model of 100 000 sites

// Sent before a step begins, so that the reader knows where the worker died.
struct StageEvent {
    std::string stage;
    std::string what;
};

struct ProgressEvent {
    std::size_t done = 0;
    std::size_t total = 0;
    std::string what;
};

struct LogEvent {
    bool warning = false;  // else it is shown with -vv
    std::string text;
};

struct ResultEvent {
    base::Json result;  // an object
};

struct ErrorEvent {
    Error error;
};

using Event = std::variant<StageEvent, ProgressEvent, LogEvent, ResultEvent, ErrorEvent>;

// Without a line break.
std::string event_line(const Event& event);

// Foreign kernels run in the worker and can write, too: names and texts are cut to 4,096 bytes, and
// only codes of errors that a worker may have are believed. Throws Error(malformed), whose reason
// says what the line is instead.
Event parse_event(std::string_view line);

}  // namespace twinkle::protocol
