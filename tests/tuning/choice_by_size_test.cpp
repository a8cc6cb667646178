#include "tuning/choice_by_size.h"

#include "catch.h"

using namespace twinkle::tuning;

namespace {

std::optional<Times> took(std::int64_t median) {
    return Times{median - median / 100, median, median + median / 100, 12};
}

MeasuredSize size(std::int64_t rows, std::vector<std::optional<Times>> times,
                  std::vector<bool> banned = {}) {
    return {rows, std::move(times), std::move(banned)};
}

using Parts = std::vector<SizePart>;

}  // namespace

TEST_CASE("neighbours with the same winner are one part") {
    CHECK(choose_by_size({size(1, {took(100), took(50)}), size(16, {took(200), took(90)}),
                          size(512, {took(900), took(700)})}) == Parts{{1, 512}});
    CHECK(choose_by_size({size(1, {took(100), took(500)}), size(16, {took(200), took(900)})}) ==
          Parts{{0, 16}});
}

TEST_CASE("what was not measured takes the nearest size by the ratio of rows") {
    // 64 rows are as far from 16 as from 256: the smaller decides.
    CHECK(choose_by_size({size(16, {took(100), took(50)}), size(256, {took(100), took(200)})}) ==
          Parts{{1, 64}, {0, 256}});
    CHECK(choose_by_size({size(16, {took(100), took(50)}), size(512, {took(100), took(200)})}) ==
          Parts{{1, 64}, {0, 512}});
}

TEST_CASE("ties go to the original, then to the first") {
    CHECK(choose_by_size({size(8, {took(1010), took(1000)})}) == Parts{{0, 8}});
    CHECK(choose_by_size({size(8, {took(2000), took(1010), took(1000)})}) == Parts{{1, 8}});
    const Times wide{500, 1000, 1500, 12};  // the quartiles overlap
    CHECK(choose_by_size({size(8, {wide, took(800)})}) == Parts{{0, 8}});
}

TEST_CASE("of candidates that cannot be told apart the one that needs no choice serves") {
    CHECK(choose_by_size({size(1, {took(900), took(100), took(101)}),
                          size(256, {took(900), took(800), took(100)})}) == Parts{{2, 256}});
    // Instead of the original, too: a branch of it would run as TorchScript has not profiled it.
    CHECK(choose_by_size({size(1, {took(101), took(900), took(100)}),
                          size(256, {took(900), took(800), took(100)})}) == Parts{{2, 256}});
}

TEST_CASE("noise alone is no reason to leave the original") {
    const Times wide{500, 1060, 1500, 12};
    CHECK(choose_by_size({size(1, {took(1000), wide}), size(256, {took(900), took(100)})}) ==
          Parts{{0, 16}, {1, 256}});
    const Times near{500, 1010, 1500, 12};
    CHECK(choose_by_size({size(1, {took(1000), near}), size(256, {took(900), took(100)})}) ==
          Parts{{1, 256}});
}

TEST_CASE("what is wrong in a size serves neither it nor what is nearer to it than to others") {
    const auto right = [](std::int64_t rows) {
        return size(rows, {took(100), took(50)}, {false, false});
    };
    const MeasuredSize wrong = size(16, {took(100), std::nullopt}, {false, true});
    CHECK(choose_by_size({right(1), wrong, right(256)}) == Parts{{1, 2}, {0, 64}, {1, 256}});
    // Only compared, not measured: the times are those of the nearest that was.
    const MeasuredSize compared = size(16, {}, {false, true});
    CHECK(choose_by_size({right(1), compared, right(256)}) == Parts{{1, 2}, {0, 64}, {1, 256}});
}

TEST_CASE("the original serves where nothing was measured") {
    CHECK(choose_by_size({}) == Parts{{0, 1}});
    CHECK(choose_by_size({size(64, {}, {false, false})}) == Parts{{0, 64}});
    CHECK(choose_by_size({size(64, {took(100), std::nullopt})}) == Parts{{0, 64}});
}

TEST_CASE("rows of any size make no overflow") {
    const auto parts =
        choose_by_size({size(0, {took(100), took(50)}), size(INT64_MAX, {took(100), took(500)})});
    REQUIRE(parts.size() == 2);
    CHECK(parts[0].candidate == 1);
    CHECK(parts[1].up_to == std::int64_t{1} << 62);
}
