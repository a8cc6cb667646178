#include "project/kernel_spec.h"

#include "catch.h"
#include "twinkle/error.h"

using namespace twinkle;
using project::parse_kernel_spec;

TEST_CASE("a kernel of the Hub is named with or without a state") {
    CHECK(parse_kernel_spec("org/name").pin.empty());
    CHECK(parse_kernel_spec("org/name@3").pin.version == 3);
    CHECK(parse_kernel_spec("org/name@>=0.1,<0.3").pin.specifier == ">=0.1,<0.3");
    CHECK(parse_kernel_spec("org/name@0.1.0").pin.specifier == "0.1.0");
    CHECK(parse_kernel_spec("org/name@main").pin.revision == "main");
    CHECK(parse_kernel_spec("org/name@v0.1.0").pin.revision == "v0.1.0");
    CHECK(parse_kernel_spec("org/name@feature/x").pin.revision == "feature/x");
    CHECK(parse_kernel_spec("org/name@3").text() == "org/name@3");
    CHECK(parse_kernel_spec("org/name").text() == "org/name");
}

TEST_CASE("what names no kernel is refused with an example") {
    for (const char* text : {"", "name", "org/", "/name", "org/name@", "org/na me", "org/../x",
                             "a/b/c", "org/name@a..b", "org/name@-x", "org/name@>= $", "a/b@ "}) {
        CAPTURE(text);
        try {
            parse_kernel_spec(text);
            FAIL("it was accepted");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::malformed);
            CHECK(error.details().hint.find("org/name@3") != std::string::npos);
        }
    }
}

TEST_CASE("a path starts with a dot or a slash, or is there") {
    CHECK(project::is_path("./a"));
    CHECK(project::is_path("/a/b"));
    CHECK(project::is_path("."));
    CHECK_FALSE(project::is_path("org/name"));
}
