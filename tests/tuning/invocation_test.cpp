#include "twinkle/invocation.h"

#include "base/throws.h"
#include "catch.h"
#include "tuning/samples.h"

using namespace twinkle;
using test::error_of;

TEST_CASE("the key of an invocation is one line of sorted JSON without what is empty") {
    CHECK(test::an_invocation().key() ==
          R"({"device":"cpu","inputs":[{"alignment":16,"dtype":"float32","layout":"dense",)"
          R"("sizes":[128,256]},{"dtype":"float"}],"mode":"inference","operation":"norm"})");
    CHECK(test::an_invocation().hash().size() == 64);
    CHECK(test::an_invocation().hash() == test::an_invocation().hash());
}

TEST_CASE("every part of an invocation is in its key, and comes back from it") {
    std::vector<Invocation> all(9, test::an_invocation());
    all[1].operation = "norm \"quoted\"\n";
    all[2].inputs[0].sizes = {};
    all[3].inputs[0].layout = "rows";
    all[4].inputs[1].value = "7";
    all[5].device = "cuda";
    all[6].mode = RunMode::backward;
    all[7].captured = true;
    all[8].extras = {{"parts", "2"}, {"axis", "0"}};
    for (const Invocation& one : all) {
        CHECK(Invocation::from_key(one.key()) == one);
        CHECK(std::count_if(all.begin(), all.end(),
                            [&](const auto& other) { return other.hash() == one.hash(); }) == 1);
    }
}

TEST_CASE("a key that nobody has written is refused") {
    for (
        const char* key :
        {"", "[]", "{}", R"({"operation":"a","inputs":{},"device":"cpu","mode":"inference"})",
         R"({"operation":"a","inputs":[],"device":"cpu","mode":"sideways"})",
         R"({"operation":"a","inputs":[],"device":"cpu","mode":"inference","more":1})",
         R"({"operation":"a","inputs":[{"dtype":"x","sizes":[1]}],"device":"cpu","mode":"inference"})",
         R"({"operation":"a","inputs":[{"dtype":"x","layout":"dense","sizes":[-1]}],"device":"cpu",)"
         R"("mode":"inference"})"}) {
        const auto error = error_of([&] { Invocation::from_key(key); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::malformed);
    }
}

TEST_CASE("sizes are in buckets of powers of two") {
    const std::vector<std::pair<std::int64_t, std::int64_t>> buckets{
        {-5, 0}, {0, 0}, {1, 1}, {2, 2}, {3, 4}, {64, 64}, {65, 128}, {INT64_MAX, 1LL << 62}};
    for (const auto& [size, bucket] : buckets) {
        CHECK(size_bucket(size) == bucket);
    }
}
