// A site's calls by their size.

#include "worker/sized_site.h"

#include "base/temp_folder.h"
#include "worker/made_up_site.h"

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using test::MadeUpSite;
using worker::SizedSite;

TEST_CASE("a site has a size for each power of two of rows") {
    MadeUpSite made;
    const SizedSite sized = made.sized();
    REQUIRE(sized.sizes().size() == 2);
    CHECK(sized.sizes()[0].rows == 4);
    CHECK(sized.sizes()[1].rows == 64);
    CHECK(sized.is_reached());
    CHECK(sized.pair(0, made.choice(0)) != sized.pair(1, made.choice(0)));
    CHECK(sized.pair(0, made.choice(0)) != sized.pair(0, made.choice(1)));
    CHECK(sized.pair(0, made.choice(0)) == MadeUpSite().sized().pair(0, made.choice(0)));
    const auto groups = sized.groups({1});
    CHECK(groups.bounds == std::vector<std::int64_t>{4 * 8, 64 * 8});  // elements
    CHECK(groups.timed == std::set<std::size_t>{1});
    CHECK(groups.keys[0] == sized.sizes()[0].invocation.hash());
}

TEST_CASE("what else decides how fast a call is makes it another one") {
    MadeUpSite made;
    std::set<std::string> hashes;
    for (const worker::CallFacts& facts :
         std::vector<worker::CallFacts>{{.platform = "cpu"},
                                        {.platform = "cuda"},
                                        {.platform = "cpu", .mode = RunMode::forward},
                                        {.platform = "cpu", .tolerance = 2},
                                        {.platform = "cpu", .cold = true},
                                        {.platform = "cpu", .captured = true}}) {
        hashes.insert(made.sized(facts).sizes()[0].invocation.hash());
    }
    CHECK(hashes.size() == 6);
}

TEST_CASE("every call is in one shard") {
    MadeUpSite made;
    std::size_t tuned = 0;
    for (const std::size_t number : {1, 2, 3}) {
        const SizedSite sized = made.sized({.platform = "cpu", .shard = {number, 3}});
        for (const SizedSite::Size& size : sized.sizes()) {
            tuned += size.tuned ? 1 : 0;
        }
    }
    CHECK(tuned == 2);
}

TEST_CASE("a configuration serves the sizes that it is allowed in") {
    const test::TempFolder folder;
    MadeUpSite made;
    SizedSite sized = made.sized();
    runtime::Choice configured = made.choice(1);
    configured.cfg["way"] = std::int64_t{2};
    made.site().candidates.push_back({configured, ""});
    sized.add(configured, {false, true});
    CHECK(!sized.is_allowed(configured, 0));
    CHECK(sized.is_allowed(configured, 1));
    CHECK(sized.is_allowed(made.choice(1), 0));
    const auto known = test::measurements_in(folder);
    CHECK(sized.missing(known, configured) == std::set<std::size_t>{1});
    CHECK(sized.missing(known, made.choice(1)) == std::set<std::size_t>{0, 1});
    const auto measured = sized.measured(known, made.site());
    CHECK(measured[0].banned == std::vector<bool>{false, false, false, true});
    CHECK(measured[1].banned == std::vector<bool>{false, false, false, false});
}

TEST_CASE("what another run has measured counts beside its own original") {
    const test::TempFolder ours, theirs;
    MadeUpSite made;
    const SizedSite sized = made.sized();
    const Invocation& call = sized.sizes()[0].invocation;
    const auto times_of = [](double original_us, double candidate_us) {
        return runtime::Samples{std::vector<double>(20, original_us),
                                std::vector<double>(20, candidate_us)};
    };
    const tuning::Candidate first = worker::candidate_of(made.choice(0));
    const tuning::Candidate second = worker::candidate_of(made.choice(1));
    test::measurements_in(ours).measured(call, sized.original(), first, times_of(100, 50));
    auto slow = test::measurements_in(theirs);
    slow.measured(call, sized.original(), second, times_of(400, 160));
    REQUIRE(tuning::Store(ours.path()).put(*slow.find(call, second)).empty());

    auto known = test::measurements_in(ours);
    sized.look_up(known);
    const auto measured = sized.measured(known, made.site());
    REQUIRE(measured[0].times.size() == 3);
    CHECK(measured[0].times[1]->median == 50'000);
    CHECK(measured[0].times[2]->median == 40'000);
}

TEST_CASE("parts by rows become parts by elements") {
    MadeUpSite made;
    const auto choice = made.sized().choice_of({{0, 32}, {2, 64}});
    REQUIRE(choice.parts.size() == 2);
    CHECK(choice.parts[0] == runtime::ChoiceBySize::Part{std::nullopt, 32 * 8});
    CHECK(choice.parts[1] == runtime::ChoiceBySize::Part{made.choice(1), 64 * 8});
}
