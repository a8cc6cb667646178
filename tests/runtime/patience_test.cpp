// How long a child may say nothing, after what its like took.

#include "runtime/trial/patience.h"

#include <cstdlib>
#include <optional>
#include <string>

#include "catch.h"

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The environment's own patience, which these tests are to be without.
class WithoutPatience {
public:
    WithoutPatience() {
        if (const char* text = std::getenv(name)) {
            before_ = text;
        }
        ::unsetenv(name);
    }
    WithoutPatience(const WithoutPatience&) = delete;
    WithoutPatience& operator=(const WithoutPatience&) = delete;
    ~WithoutPatience() { before_ ? ::setenv(name, before_->c_str(), 1) : ::unsetenv(name); }

    static constexpr const char* name = "TWINKLE_SANDBOX_SECONDS";

private:
    std::optional<std::string> before_;
};

milliseconds silence_after(milliseconds took, milliseconds usual) {
    twinkle::child::Limits limits;
    limits.silence = usual;
    twinkle::runtime::shorten_silence(limits, took);
    return limits.silence;
}

}  // namespace

TEST_CASE("A silence is 20 times what the work took, between 20 s and the usual one") {
    const WithoutPatience scope;
    CHECK(silence_after(milliseconds(100), seconds(60)) == seconds(20));
    CHECK(silence_after(milliseconds(2500), seconds(60)) == seconds(50));
    CHECK(silence_after(seconds(10), seconds(60)) == seconds(60));
    CHECK(silence_after(seconds(0), seconds(10)) == seconds(10));
}

TEST_CASE("A silence that the environment sets stays") {
    const WithoutPatience scope;
    ::setenv(WithoutPatience::name, "600", 1);
    CHECK(silence_after(milliseconds(100), seconds(600)) == seconds(600));
    ::setenv(WithoutPatience::name, "none", 1);
    CHECK(silence_after(milliseconds(100), seconds(600)) == seconds(20));
}
