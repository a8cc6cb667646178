#include "hub/headers.h"

#include <random>

#include "catch.h"
#include "hub/retry.h"
#include "hub/url.h"

using namespace twinkle::hub;
using std::chrono::seconds;

namespace {

const auto now = std::chrono::system_clock::from_time_t(784111777);  // 06 Nov 1994 08:49:37 GMT

}  // namespace

TEST_CASE("header names are found in any case, values without the blanks around them") {
    Headers headers;
    headers.add("X-Repo-Commit", "  abc \t");
    headers.add("link", "first");
    headers.add("Link", "second");
    CHECK(headers.get("x-repo-commit") == "abc");
    CHECK(headers.get("LINK") == "first");
    CHECK_FALSE(headers.get("location"));
}

TEST_CASE("the next page of a Link header") {
    CHECK(next_link("<https://h/a?cursor=x%3D>; rel=\"next\"") == "https://h/a?cursor=x%3D");
    CHECK(next_link("<p>; rel=prev, <n>;title=\"a, b; c\";rel=next") == "n");
    CHECK(next_link("<a,b;c>; REL=\"prev Next\"") == "a,b;c");
    CHECK_FALSE(next_link("<p>; rel=\"prev\""));
    CHECK_FALSE(next_link("<p>"));
    CHECK_FALSE(next_link("p; rel=next"));
    CHECK_FALSE(next_link("<p; rel=next"));
    CHECK_FALSE(next_link(""));
    CHECK_FALSE(next_link("<p>; nextrel=\"next\""));
}

TEST_CASE("Retry-After is a number of seconds or a date") {
    CHECK(retry_after("12", now) == seconds(12));
    CHECK(retry_after(" 0 ", now) == seconds(0));
    CHECK(retry_after("Sun, 06 Nov 1994 08:50:07 GMT", now) == seconds(30));
    CHECK(retry_after("Sun, 06 Nov 1994 08:00:00 GMT", now) == seconds(0));
    CHECK(retry_after("Sun, 06 Nov 9999 08:50:07 GMT", now) == seconds(1 << 30));
    CHECK(retry_after("99999999999999999999", now) == std::nullopt);
    CHECK(retry_after("18446744073709551615", now) == seconds(1 << 30));
    for (const char* text : {"", "soon", "-3", "1.5", "12 s", "0x10", ":", "::::"}) {
        CHECK_FALSE(retry_after(text, now));
    }
}

TEST_CASE("the ratelimit header counts when nothing is left") {
    CHECK(exhausted_for("\"api\";r=0;t=12") == seconds(12));
    CHECK(exhausted_for("\"a;r=5\"; r = 0 ; t = 7") == seconds(7));
    CHECK(exhausted_for("\"a\";r=3;t=9, \"b\";r=0;t=4") == seconds(4));
    CHECK_FALSE(exhausted_for("\"api\";r=1;t=12"));
    CHECK_FALSE(exhausted_for("\"api\";r=0"));
    CHECK_FALSE(exhausted_for("r=0;t=x"));
    CHECK_FALSE(exhausted_for(""));
}

TEST_CASE("an ETag without its dress") {
    CHECK(plain_etag("\"abc\"") == "abc");
    CHECK(plain_etag("W/\"abc\"") == "abc");
    CHECK(plain_etag("abc") == "abc");
    CHECK(plain_etag("\"\"").empty());
}

TEST_CASE("Content-Range") {
    const auto range = content_range("bytes 5-9/10");
    REQUIRE(range);
    CHECK(range->first == 5);
    CHECK(range->last == 9);
    CHECK(range->total == 10u);
    REQUIRE(content_range("bytes 0-0/*"));
    CHECK_FALSE(content_range("bytes 0-0/*")->total);
    for (const char* text : {"bytes 9-5/10", "bytes 5-10/10", "bytes */10", "5-9/10", "bytes 5-9",
                             "bytes -9/10", "items 0-1/2", ""}) {
        CHECK_FALSE(content_range(text));
    }
}

TEST_CASE("parsers of headers survive anything") {
    const std::vector<std::string> seeds{"<https://h/a?b=c>; rel=\"next\", <x>; rel=prev",
                                         "\"api\";r=0;t=12, \"b\";r=1;t=2",
                                         "Sun, 06 Nov 1994 08:49:37 GMT",
                                         "120",
                                         "bytes 0-99/100",
                                         "W/\"abc\"",
                                         "https://user:pass@host.example:8443/a/../b?x=y#z"};
    const std::string alphabet = "<>;,=\" \t\\/-*09azW%:@?#\x01\x80\xff";
    std::mt19937 random(5);
    for (int round = 0; round < 40'000; ++round) {
        std::string text = seeds[random() % seeds.size()];
        for (unsigned edits = random() % 6; edits > 0 && !text.empty(); --edits) {
            const auto at = random() % text.size();
            switch (random() % 4) {
                case 0: text.erase(at, random() % 4); break;
                case 1: text.insert(at, 1, alphabet[random() % alphabet.size()]); break;
                case 2: text[at] = static_cast<char>(random()); break;
                default: text += text.substr(at, 8); break;
            }
        }
        if (const auto next = next_link(text)) {
            REQUIRE(text.find("<" + *next + ">") != std::string::npos);
        }
        if (const auto wait = retry_after(text, now)) {
            REQUIRE(wait->count() >= 0);
        }
        if (const auto wait = exhausted_for(text)) {
            REQUIRE(wait->count() >= 0);
        }
        if (const auto range = content_range(text)) {
            REQUIRE(range->first <= range->last);
        }
        plain_etag(text);
        if (const auto url = resolve_url("https://h/x", text)) {
            REQUIRE(origin_of(*url));
        }
        REQUIRE(redacted_url(text).find('?') == std::string::npos);
    }
}
