#include "base/parallel.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include "catch.h"

using twinkle::base::parallel_for;

TEST_CASE("everything is done once, whatever the number of threads") {
    for (const unsigned threads : {0u, 1u, 2u, 7u}) {
        for (const std::size_t count : {0u, 1u, 3u, 1000u}) {
            std::vector<std::atomic<int>> done(count);
            parallel_for(count, threads, [&](std::size_t i) { ++done[i]; });
            for (const auto& times : done) {
                REQUIRE(times == 1);
            }
        }
    }
}

TEST_CASE("an exception comes out, and little is begun after it") {
    std::atomic<int> begun{0};
    CHECK_THROWS_AS(parallel_for(100000, 2,
                                 [&](std::size_t) {
                                     ++begun;
                                     throw std::runtime_error("no");
                                 }),
                    std::runtime_error);
    CHECK(begun <= 2);
}
