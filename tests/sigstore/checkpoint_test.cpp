#include "sigstore/checkpoint.h"

#include "base/base64.h"
#include "base/throws.h"
#include "catch.h"

using namespace twinkle;
using sigstore::parse_checkpoint;

namespace {

const std::string root_line = base::to_base64(std::string(32, 'r')) + "\n";
const std::string body = "log.test\n7\n" + root_line;
const std::string line = "\xe2\x80\x94 log.test " + base::to_base64("hintsignature") + "\n";

bool is_refused(const std::string& note) {
    const auto error = test::error_of([&] { parse_checkpoint(note); });
    return error && error->code() == ErrorCode::malformed;
}

}  // namespace

TEST_CASE("a checkpoint is read with all its signatures") {
    const auto read = parse_checkpoint(body + "Timestamp: 1\n\n" + line + line);
    CHECK(read.origin == "log.test");
    CHECK(read.size == 7);
    CHECK(read.root_hash == std::string(32, 'r'));
    CHECK(read.signed_text == body + "Timestamp: 1\n");
    REQUIRE(read.signatures.size() == 2);
    CHECK(read.signatures[0].name == "log.test");
    CHECK(read.signatures[0].hint == "hint");
    CHECK(read.signatures[0].signature == "signature");
}

TEST_CASE("what is no checkpoint is refused") {
    CHECK_FALSE(is_refused(body + "\n" + line));
    for (const std::string& note :
         {std::string(), std::string("\n\n"), body, body + "\n", body + "\n" + line + "\n" + line,
          body + "\n" + line + "x\n", body + "\n" + line.substr(0, line.size() - 1),
          body + "\n" + line.substr(4), body + "\n\xe2\x80\x94 log.test AAAA\n",
          body + "\n\xe2\x80\x94  AAAAAAAAAAAA\n", body + "\n\xe2\x80\x94 log.test *\n",
          "\n7\n" + root_line + "\n" + line, "log.test\n" + root_line + "\n" + line,
          "log.test\n07\n" + root_line + "\n" + line, "log.test\n-7\n" + root_line + "\n" + line,
          "log.test\n99999999999999999999\n" + root_line + "\n" + line,
          "log.test\n7\nAAAA\n\n" + line}) {
        INFO(note);
        CHECK(is_refused(note));
    }
    std::string many = body + "\n";
    for (int i = 0; i < 101; ++i) {
        many += line;
    }
    CHECK(is_refused(many));
}
