#include "base/quantity.h"

#include "catch.h"

using namespace twinkle::base;

TEST_CASE("bytes have three digits and a unit") {
    CHECK(human_bytes(0) == "0 B");
    CHECK(human_bytes(999) == "999 B");
    CHECK(human_bytes(1000) == "1.00 kB");
    CHECK(human_bytes(12'345) == "12.3 kB");
    CHECK(human_bytes(999'400) == "999 kB");
    CHECK(human_bytes(999'600) == "1.00 MB");
    CHECK(human_bytes(1'073'741'824) == "1.07 GB");
    CHECK(human_bytes(~std::uint64_t{0}) == "18.4 EB");
}

TEST_CASE("durations look like a clock") {
    using std::chrono::seconds;
    CHECK(human_duration(seconds(7)) == "0:07");
    CHECK(human_duration(seconds(760)) == "12:40");
    CHECK(human_duration(seconds(11'100)) == "3:05:00");
    CHECK(human_duration(seconds(-1)) == "0:00");
}

TEST_CASE("one thing, several things") {
    CHECK(counted(1, "file") == "1 file");
    CHECK(counted(0, "file") == "0 files");
}
