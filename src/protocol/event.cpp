#include "protocol/event.h"

#include "protocol/bounded_text.h"
#include "protocol/error_json.h"

namespace twinkle::protocol {

namespace {

using base::Json;

constexpr ErrorCode believed[] = {
    ErrorCode::failed,      ErrorCode::malformed, ErrorCode::not_found,   ErrorCode::verification,
    ErrorCode::unreachable, ErrorCode::refused,   ErrorCode::out_of_date, ErrorCode::interrupted};

Json to_json(const StageEvent& event) {
    return {{"event", "stage"}, {"stage", event.stage}, {"what", event.what}};
}

Json to_json(const ProgressEvent& event) {
    return {
        {"event", "progress"}, {"done", event.done}, {"total", event.total}, {"what", event.what}};
}

Json to_json(const LogEvent& event) {
    return {{"event", "log"}, {"level", event.warning ? "warning" : "trace"}, {"text", event.text}};
}

Json to_json(const ResultEvent& event) {
    return {{"result", event.result}};
}

Json to_json(const ErrorEvent& event) {
    return {{"error", protocol::to_json(event.error)}};
}

std::size_t count_in(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number_unsigned() ? found->get<std::size_t>() : 0;
}

[[noreturn]] void is_none(const std::string& why) {
    throw Error(ErrorCode::malformed,
                {.what = "a line is none of the protocol", .where = "", .why = why, .hint = ""});
}

Json parsed(std::string_view line) {
    try {
        return base::parse_json(line, "worker", {.bytes = longest_event, .depth = 32});
    } catch (const Error& error) {
        is_none(error.details().why.empty() ? error.details().what : error.details().why);
    }
}

}  // namespace

std::string event_line(const Event& event) {
    return base::json_line(std::visit([](const auto& one) { return to_json(one); }, event));
}

Event parse_event(std::string_view line) {
    const Json json = parsed(line);
    if (!json.is_object()) {
        is_none("a value that is not an object");
    }
    const std::string kind = bounded_text(json, "event");
    if (kind == "stage") {
        return StageEvent{bounded_text(json, "stage"), bounded_text(json, "what")};
    }
    if (kind == "progress") {
        return ProgressEvent{count_in(json, "done"), count_in(json, "total"),
                             bounded_text(json, "what")};
    }
    if (kind == "log") {
        return LogEvent{bounded_text(json, "level") == "warning", bounded_text(json, "text")};
    }
    if (const auto result = json.find("result"); result != json.end() && result->is_object()) {
        return ResultEvent{*result};
    }
    if (const auto error = json.find("error"); error != json.end() && error->is_object()) {
        return ErrorEvent{error_of(*error, believed, ErrorCode::failed)};
    }
    is_none("a message that is no event, result or error");
}

}  // namespace twinkle::protocol
