#include "protocol/error_json.h"

#include "catch.h"

#include <string>

using twinkle::Error;
using twinkle::ErrorCode;
using twinkle::base::Json;

TEST_CASE("an error arrives as it was sent") {
    constexpr ErrorCode believed[] = {ErrorCode::refused, ErrorCode::malformed};
    const Error sent(ErrorCode::malformed,
                     {.what = "it cannot", .where = "here", .why = "because", .hint = "do so"});
    const Error got =
        twinkle::protocol::error_of(twinkle::protocol::to_json(sent), believed, ErrorCode::failed);
    CHECK(got.code() == ErrorCode::malformed);
    CHECK(twinkle::protocol::to_json(got) == twinkle::protocol::to_json(sent));
}

TEST_CASE("a process is believed neither every code nor every text") {
    constexpr ErrorCode believed[] = {ErrorCode::malformed};
    const Json forged = {{"code", "interrupted"}, {"what", std::string(1 << 20, 'x')}, {"why", 3}};
    const Error error = twinkle::protocol::error_of(forged, believed, ErrorCode::refused);
    CHECK(error.code() == ErrorCode::refused);
    CHECK(error.details().what.size() == 4096);
    CHECK(error.details().why.empty());
    CHECK(twinkle::protocol::error_of(Json::array(), believed, ErrorCode::failed).code() ==
          ErrorCode::failed);
}
