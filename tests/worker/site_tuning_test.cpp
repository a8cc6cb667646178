// The parts of a tuning, without a worker: what is measured when, what is known, what is chosen.

#include "base/temp_folder.h"
#include "runtime/verify/run_error.h"
#include "worker/findings.h"
#include "worker/made_up_site.h"
#include "worker/measuring_turns.h"
#include "worker/site_decision.h"
#include "worker/tuned_sites.h"

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using test::made_up_verdict;
using test::MadeUpSite;
using test::measurements_in;
using worker::Findings;
using worker::MeasuringTurns;
using worker::Pairs;
using worker::SiteDecision;
using worker::SizedSite;

namespace {

using Sizes = std::set<std::size_t>;
constexpr std::chrono::seconds longest(60);

}  // namespace

TEST_CASE("what was handed over is not tried again") {
    const test::TempFolder folder;
    MadeUpSite made;
    const SizedSite sized = made.sized();
    const auto known = measurements_in(folder);
    MeasuringTurns turns(longest);
    CHECK(turns.untried(sized, made.choice(0), known) == Sizes{0, 1});
    turns.hand_over(sized, made.choice(0), {1});
    CHECK(turns.untried(sized, made.choice(0), known) == Sizes{0});
    CHECK(turns.untried(sized, made.choice(1), known) == Sizes{0, 1});
    MadeUpSite other;  // that is called alike
    CHECK(turns.untried(other.sized(), other.choice(0), known) == Sizes{0});
}

TEST_CASE("of sites that are called alike each claims another candidate") {
    const test::TempFolder folder;
    MadeUpSite made;
    const SizedSite sized = made.sized();
    auto known = measurements_in(folder);
    MeasuringTurns turns(longest);
    Pairs taken;
    CHECK(turns.claim(sized, made.choice(0), known, taken));
    CHECK(!turns.claim(sized, made.choice(0), known, taken));
    CHECK(turns.claim(sized, made.choice(1), known, taken));
    taken.clear();
    CHECK(turns.take(sized, made.choice(0), known, taken) == Sizes{0, 1});
    CHECK(turns.take(sized, made.choice(0), known, taken).empty());
}

TEST_CASE("what another run measures is left to it, for as long as it does") {
    const test::TempFolder folder;
    MadeUpSite made;
    const SizedSite sized = made.sized();
    auto theirs = measurements_in(folder), ours = measurements_in(folder);
    REQUIRE(theirs.take(sized.sizes()[0].invocation, longest));
    MeasuringTurns turns(longest);
    Pairs taken;
    CHECK(turns.take(sized, made.choice(0), ours, taken) == Sizes{1});
    turns.hand_over(sized, made.choice(0), {1});
    taken.clear();
    CHECK(turns.untried(sized, made.choice(0), ours) == Sizes{0});
    CHECK(!turns.claim(sized, made.choice(0), ours, taken));
    theirs.measured(sized.sizes()[0].invocation, sized.original(),
                    worker::candidate_of(made.choice(0)),
                    {std::vector<double>(20, 9), std::vector<double>(20, 5)});
    theirs.release();
    turns.look_again();
    CHECK(turns.claim(sized, made.choice(0), ours, taken));
    taken.clear();
    CHECK(turns.take(sized, made.choice(0), ours, taken).empty());  // it is known now
    CHECK(turns.take(sized, made.choice(1), ours, taken) == Sizes{0, 1});
}

TEST_CASE("a candidate is wrong where every size that it may serve is") {
    const test::TempFolder folder;
    MadeUpSite made({"fast"});
    const SizedSite sized = made.sized();
    Findings found(measurements_in(folder));
    CHECK(!found.all_wrong(made.site(), sized));
    found.note(sized, made.choice(0), made_up_verdict({{"wrong values"}, {"", 9, 5}}));
    CHECK(!found.all_wrong(made.site(), sized));
    CHECK(found.problem_of(sized, made.choice(0)) == "wrong values");
    found.note(sized, made.choice(0), made_up_verdict({{"wrong values"}, {"wrong again"}}));
    REQUIRE(found.all_wrong(made.site(), sized));
    CHECK(found.all_wrong(made.site(), sized)->because == "wrong values");
    CHECK(found.all_wrong(made.site(), sized)->ran);
}

TEST_CASE("another candidate that is not known to be wrong is enough") {
    const test::TempFolder folder;
    MadeUpSite made;
    const SizedSite sized = made.sized();
    Findings found(measurements_in(folder));
    found.note(sized, made.choice(0), made_up_verdict({{"wrong"}, {"wrong"}}));
    CHECK(!found.all_wrong(made.site(), sized));
    made.site().candidates[1].refused = "it cannot serve";
    CHECK(found.all_wrong(made.site(), sized));
}

TEST_CASE("what has ended its child, could not run or not be captured is no wrong value") {
    const test::TempFolder folder;
    MadeUpSite made({"fast"});
    const SizedSite sized = made.sized();
    Findings died(measurements_in(folder));
    runtime::Verdict verdict;
    verdict.because = "it has ended its process";
    died.note(sized, made.choice(0), verdict);
    REQUIRE(died.all_wrong(made.site(), sized));
    CHECK(!died.all_wrong(made.site(), sized)->ran);

    const std::string cannot_run = runtime::cannot_be_run("no such shape");
    Findings failed(measurements_in(folder));
    failed.note(sized, made.choice(0), made_up_verdict({{cannot_run}, {cannot_run}}));
    REQUIRE(failed.all_wrong(made.site(), sized));
    CHECK(!failed.all_wrong(made.site(), sized)->ran);

    const std::string not_captured = runtime::cannot_be_captured("out of memory");
    Findings uncaptured(measurements_in(folder));
    uncaptured.note(sized, made.choice(0), made_up_verdict({{not_captured}, {not_captured}}));
    CHECK(!uncaptured.all_wrong(made.site(), sized));
}

TEST_CASE("a site gets what is fastest, and each other candidate a reason") {
    const test::TempFolder folder;
    MadeUpSite made({"fast", "faster", "slow", "wrong", "late"});
    const SizedSite sized = made.sized();
    Findings found(measurements_in(folder));
    found.note(sized, made.choice(0), made_up_verdict({{"", 100, 80}, {"", 100, 80}}));
    found.note(sized, made.choice(1), made_up_verdict({{"", 100, 50}, {"", 100, 50}}));
    found.note(sized, made.choice(2), made_up_verdict({{"", 100, 200}, {"", 100, 200}}));
    found.note(sized, made.choice(3), made_up_verdict({{"wrong values"}, {"wrong values"}}));
    const SiteDecision decision(made.site(), sized, found);
    CHECK(decision.apply(made.plan, made.site()));
    CHECK(made.site().choice == made.choice(1));
    CHECK(!made.site().by_size);
    const auto refused = [&](std::size_t i) {
        return made.site().candidate(made.choice(i))->refused;
    };
    CHECK(refused(1).empty());
    CHECK(refused(0) == "1.25 to 1.25 times as fast as the original here, with 4 to 64 rows");
    CHECK(refused(3) == "wrong values");
    CHECK(refused(4) == "not measured: the time was up");

    SiteReport entry = made.site().report;
    entry.status = SiteStatus::replaced;
    std::set<const tuning::Entry*> told;
    decision.enter(entry, made.site(), told);
    CHECK(entry.candidates.size() == 5);
    CHECK(entry.by_size.empty());
    CHECK(told.size() == 2 * 5);  // the original and those that were run
    CHECK(entry.because.find("as fast as the original here") != std::string::npos);
}

TEST_CASE("calls of each size get what is fastest there") {
    const test::TempFolder folder;
    MadeUpSite made({"fast"});
    const SizedSite sized = made.sized();
    Findings found(measurements_in(folder));
    found.note(sized, made.choice(0), made_up_verdict({{"", 100, 200}, {"", 100, 50}}));
    const SiteDecision decision(made.site(), sized, found);
    CHECK(decision.apply(made.plan, made.site()));
    REQUIRE(made.site().by_size);
    REQUIRE(made.site().by_size->parts.size() == 2);
    CHECK(!made.site().by_size->parts[0].choice);
    CHECK(made.site().by_size->parts[1].choice == made.choice(0));
}

TEST_CASE("a site keeps its original where nothing is faster, and says what was measured") {
    const test::TempFolder folder;
    MadeUpSite made({"slow"});
    const SizedSite sized = made.sized();
    Findings found(measurements_in(folder));
    found.note(sized, made.choice(0), made_up_verdict({{"", 100, 200}, {"", 100, 200}}));
    CHECK(SiteDecision(made.site(), sized, found).apply(made.plan, made.site()));
    CHECK(!made.site().choice);
    CHECK(made.site().report.because.starts_with("no kernel is faster here: my.py: slow is 0.50"));
}

TEST_CASE("a site of which nothing was measured says so, not that nothing is faster") {
    const test::TempFolder folder;
    MadeUpSite made({"late", "later"});
    const SizedSite sized = made.sized();
    const Findings found(measurements_in(folder));
    CHECK(SiteDecision(made.site(), sized, found).apply(made.plan, made.site()));
    CHECK(!made.site().choice);
    CHECK(made.site().report.because.starts_with("no kernel was measured here: the time was up"));
}

TEST_CASE("a site without calls is asked for once") {
    const test::TempFolder folder;
    MadeUpSite made;
    auto known = measurements_in(folder);
    worker::TunedSites sites({.platform = "cpu"});
    Report report;
    report.sites = {made.site().report};
    CHECK(sites.unknown(report).empty());  // it is not replaced
    report.sites[0].status = SiteStatus::replaced;
    CHECK(sites.unknown(report) == std::vector<std::string>{"double"});
    sites.add({"double"}, {}, made.plan, known);
    CHECK(sites.unknown(report).empty());
    CHECK(sites.find("double") == nullptr);
}

TEST_CASE("a surveyed site has its calls") {
    const test::TempFolder folder;
    MadeUpSite made;
    auto known = measurements_in(folder);
    worker::TunedSites sites({.platform = "cpu"});
    runtime::Survey survey;
    survey.sites.emplace("double", MadeUpSite::calls());
    survey.cold = true;
    sites.add({"double"}, survey, made.plan, known);
    REQUIRE(sites.find("double") != nullptr);
    CHECK(sites.find("double")->sizes().size() == 2);
    CHECK(sites.find("double")->sizes()[0].invocation.extras.at("weights") == "memory");
}
