// What two processes have measured of the same sites.
#include "runtime/verify/two_processes.h"

// After LibTorch.
#include "catch.h"

using namespace twinkle::runtime;

namespace {

Verdict right(std::vector<SizeVerdict> by_size) {
    Verdict verdict;
    verdict.right = true;
    verdict.by_size = std::move(by_size);
    return verdict;
}

std::map<std::string, Verdict> joined(const Verdict& first, const Verdict& second) {
    std::map<std::string, Verdict> all{{"site", first}, {"another", right({})}};
    add_measured(all, {{"site", second}});
    return all;
}

}  // namespace

TEST_CASE("turns of a second process follow the first's, side by side") {
    // The candidate lost early in the first one.
    const auto all = joined(right({{true, "", {{1, 2, 3}, {4, 5}}}, {true, "", {}}}),
                            right({{true, "", {{6, 7}, {8, 9}}}, {true, "", {{1}, {2}}}}));
    const auto& sizes = all.at("site").by_size;
    CHECK(sizes[0].times == Samples{{1, 2, 6, 7}, {4, 5, 8, 9}});
    CHECK(sizes[1].times == Samples{{1}, {2}});  // the first had no time for it
    CHECK(all.at("another").right);
}

TEST_CASE("a problem that one of two processes has found counts") {
    const Samples times{{1}, {2}};
    const auto all = joined(right({{true, "wrong", {}}, {true, "", times}}),
                            right({{true, "", times}, {true, "it cannot be run", {}}}));
    const auto& sizes = all.at("site").by_size;
    CHECK(sizes[0].problem == "wrong");
    CHECK(sizes[0].times.empty());
    CHECK(sizes[1].problem == "it cannot be run");
    Verdict died;
    died.because = "it crashed";
    CHECK_FALSE(joined(right({{true, "", times}}), died).at("site").right);
}
