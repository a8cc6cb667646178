#include "protocol/event.h"

#include "catch.h"

#include <string>

using namespace twinkle;
using namespace twinkle::protocol;

namespace {

template <class Kind>
Kind sent(const Kind& event) {
    return std::get<Kind>(parse_event(event_line(event)));
}

std::string refusal(std::string_view line) {
    try {
        parse_event(line);
    } catch (const Error& error) {
        return error.code() == ErrorCode::malformed ? error.details().why : "another error";
    }
    return "";
}

}  // namespace

TEST_CASE("every event arrives as it was sent") {
    const auto stage = sent(StageEvent{"verify", "layer \"3\"\n"});
    CHECK((stage.stage == "verify" && stage.what == "layer \"3\"\n"));
    const auto progress = sent(ProgressEvent{3, 7, "first"});
    CHECK((progress.done == 3 && progress.total == 7 && progress.what == "first"));
    for (const bool warning : {true, false}) {
        const auto log = sent(LogEvent{warning, "it is slow"});
        CHECK((log.warning == warning && log.text == "it is slow"));
    }
    CHECK(sent(ResultEvent{{{"sites", 2}}}).result == base::Json{{"sites", 2}});
    const Error error(ErrorCode::refused,
                      {.what = "it cannot", .where = "here", .why = "because", .hint = "do so"});
    const auto got = sent(ErrorEvent{error}).error;
    CHECK((got.code() == ErrorCode::refused && got.details().hint == "do so"));
}

TEST_CASE("what foreign code writes is bounded") {
    const std::string name(1 << 20, 'x');
    CHECK(sent(StageEvent{name, name}).what.size() == 4096);
    const auto progress =
        std::get<ProgressEvent>(parse_event(R"({"event":"progress","done":-1,"total":"3"})"));
    CHECK((progress.done == 0 && progress.total == 0));
    CHECK_FALSE(std::get<LogEvent>(parse_event(R"({"event":"log","level":7})")).warning);
    const auto error = std::get<ErrorEvent>(parse_event(R"({"error":{"code":"none of ours"}})"));
    CHECK(error.error.code() == ErrorCode::failed);
}

TEST_CASE("a line that is no event is refused with its reason") {
    CHECK(refusal("[]").find("not an object") != std::string::npos);
    CHECK(refusal("{}").find("no event") != std::string::npos);
    CHECK(refusal(R"({"result": 3})").find("no event") != std::string::npos);
    CHECK_FALSE(refusal("{").empty());
    CHECK_FALSE(refusal("").empty());
}
