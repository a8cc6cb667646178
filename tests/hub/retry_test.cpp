#include "hub/retry.h"

#include "catch.h"
#include "fake_clock.h"

using namespace twinkle;
using namespace twinkle::hub;
using std::chrono::milliseconds;
using test::FakeClock;

namespace {

std::optional<milliseconds> delay(int failures, int status, const Headers& headers,
                                  double random = 0.5) {
    FakeClock clock;
    clock.next_random = random;
    return retry_delay({}, failures, status, headers, clock);
}

Headers header(std::string_view name, std::string_view value) {
    Headers headers;
    headers.add(name, value);
    return headers;
}

}  // namespace

TEST_CASE("delays double, up to a bound, with jitter") {
    CHECK(delay(1, 503, {}, 0.0) == milliseconds(250));
    CHECK(delay(1, 503, {}, 0.999) == milliseconds(499));
    CHECK(delay(2, 503, {}, 0.0) == milliseconds(500));
    CHECK(delay(4, 0, {}, 0.0) == milliseconds(2000));
    CHECK(delay(50, 0, {}, 0.0) == milliseconds(4000));
}

TEST_CASE("what a server asks for is kept") {
    CHECK(delay(1, 503, header("retry-after", "7"), 0.0) == milliseconds(7000));
    CHECK(delay(4, 429, header("retry-after", "0"), 0.5) == milliseconds(500));
    CHECK(delay(1, 429, header("ratelimit", "\"api\";r=0;t=12"), 0.0) == milliseconds(12'000));
    CHECK(delay(1, 503, header("ratelimit", "\"api\";r=0;t=12"), 0.0) == milliseconds(250));
    CHECK(delay(1, 429, header("retry-after", "soon"), 0.0) == milliseconds(250));
    CHECK(delay(1, 429, header("retry-after", "Tue, 14 Nov 2023 22:13:50 GMT"), 0.0) ==
          milliseconds(30'000));
    CHECK_FALSE(delay(1, 429, header("retry-after", "86400")));
    CHECK_FALSE(delay(1, 429, header("ratelimit", "\"api\";r=0;t=9999")));
}

TEST_CASE("which answers may change") {
    for (const int status : {408, 429, 500, 502, 503, 504, 520}) {
        CHECK(is_transient(status));
    }
    for (const int status : {200, 301, 400, 401, 403, 404, 416, 501, 505}) {
        CHECK_FALSE(is_transient(status));
    }
}
