#include "hub/url.h"

#include "catch.h"

using namespace twinkle::hub;

TEST_CASE("an origin is scheme, host and port, however they are spelled") {
    CHECK(origin_of("https://Hub.Example/x?y") == "https://hub.example:443");
    CHECK(origin_of("HTTPS://hub.example:443") == "https://hub.example:443");
    CHECK(origin_of("http://hub.example") == "http://hub.example:80");
    CHECK(origin_of("https://hub.example@evil.example/") == "https://evil.example:443");
    CHECK(origin_of("https://a:b@evil.example:8443") == "https://evil.example:8443");
    CHECK(origin_of("http://[::1]:80/") == "http://[::1]:80");
    CHECK(origin_of("https://hub.example") != origin_of("https://hub.example."));
    for (const char* text : {"", "hub", "/x", "ftp://h/", "file:///etc/passwd", "https://",
                             "http://a b/", "javascript:alert(1)", "http://h/\r\nX: y"}) {
        CHECK_FALSE(origin_of(text));
    }
}

TEST_CASE("targets are resolved against where they came from") {
    const std::string base = "https://h/a/b?q=1";
    CHECK(resolve_url(base, "/c?d=e%2F") == "https://h/c?d=e%2F");
    CHECK(resolve_url(base, "c") == "https://h/a/c");
    CHECK(resolve_url(base, "?x=y") == "https://h/a/b?x=y");
    CHECK(resolve_url(base, "//other/c") == "https://other/c");
    CHECK(resolve_url(base, "http://u:p@other/c#f") == "http://other/c");
    CHECK_FALSE(resolve_url(base, "file:///etc/passwd"));
    CHECK_FALSE(resolve_url(base, "ftp://other/x"));
    CHECK_FALSE(resolve_url(base, "http://"));
    CHECK_FALSE(resolve_url(base, "/a b"));
    CHECK_FALSE(resolve_url(base, std::string(100'000, 'x')));
}

TEST_CASE("what is shown of a URL holds no right to anything") {
    CHECK(redacted_url("https://files.example/repos/x?Signature=5ecre7&Expires=1#frag") ==
          "https://files.example/repos/x");
    CHECK(redacted_url("http://user:pass@proxy.example:3128/") == "http://proxy.example:3128/");
    CHECK(redacted_url("not a url with ?token=abc") == "(not a URL)");
}

TEST_CASE("names in URLs") {
    CHECK(quote("refs/pr/1") == "refs%2Fpr%2F1");
    CHECK(quote("build/a b#?%.py", "/") == "build/a%20b%23%3F%25.py");
    CHECK(quote("v0.1.0-rc_1~x") == "v0.1.0-rc_1~x");
    CHECK(quote("ü") == "%C3%BC");
}
