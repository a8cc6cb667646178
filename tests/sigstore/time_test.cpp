#include "sigstore/time.h"

#include "catch.h"

using namespace twinkle::sigstore;

namespace {

std::string read(const std::string& text) {
    const auto time = parse_time(text);
    return time ? format_time(*time) : "none";
}

}  // namespace

TEST_CASE("times are read with fractions and offsets") {
    CHECK(read("2025-07-04T01:02:03Z") == "2025-07-04T01:02:03Z");
    CHECK(read("2022-12-31T23:59:59.999Z") == "2022-12-31T23:59:59Z");
    CHECK(read("2025-07-04T01:02:03+02:30") == "2025-07-03T22:32:03Z");
    CHECK(read("2025-07-04T01:02:03.5-01:00") == "2025-07-04T02:02:03Z");
    CHECK(read("2024-02-29T00:00:00Z") == "2024-02-29T00:00:00Z");
    CHECK(*parse_time("1970-01-01T00:00:00.000001Z") - *parse_time("1970-01-01T00:00:00Z") ==
          std::chrono::microseconds(1));
}

TEST_CASE("what is no time is refused") {
    for (const char* text :
         {"", "2025-07-04", "2025-07-04T01:02:03", "2025-07-04 01:02:03Z", "2025-13-04T01:02:03Z",
          "2025-02-29T00:00:00Z", "2025-07-04T24:00:00Z", "2025-07-04T01:60:00Z",
          "2025-07-04T01:02:60Z", "2025-07-04T01:02:03.Z", "2025-07-04T01:02:03Z ",
          "2025-07-04T01:02:03+0200", "0000-01-01T00:00:00Z", "2025-07-04T01:02:03.1234567890Z"}) {
        CHECK(read(text) == "none");
    }
}

TEST_CASE("a period has both its ends") {
    const Period period{*parse_time("2025-01-01T00:00:00Z"), parse_time("2025-01-02T00:00:00Z")};
    CHECK(period.contains(period.start));
    CHECK(period.contains(*period.end));
    CHECK_FALSE(period.contains(*period.end + std::chrono::microseconds(1)));
    CHECK_FALSE(period.contains(period.start - std::chrono::microseconds(1)));
    CHECK(Period{period.start, {}}.contains(*parse_time("9999-01-01T00:00:00Z")));
}

TEST_CASE("seconds outside of the years that are written are refused") {
    CHECK(format_time(*time_from_seconds(0)) == "1970-01-01T00:00:00Z");
    CHECK(format_time(*time_from_seconds(253402300799)) == "9999-12-31T23:59:59Z");
    CHECK_FALSE(time_from_seconds(253402300800));
    CHECK_FALSE(time_from_seconds(INT64_MAX));
    CHECK_FALSE(time_from_seconds(INT64_MIN));
}
