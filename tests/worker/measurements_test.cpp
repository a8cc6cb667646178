// What candidates take, of this run and of the store.

#include "worker/measurements.h"

#include "base/temp_folder.h"
#include "worker/made_up_site.h"

// After LibTorch.
#include "catch.h"

#include <fstream>

using namespace twinkle;
using test::measurements_in;
using worker::Measurements;

namespace {

const std::string problem = "wrong values";

Invocation a_call(std::int64_t rows = 4) {
    return {.operation = "double",
            .inputs = {{.dtype = "float32", .sizes = {rows, 8}, .layout = "dense"}}};
}

const tuning::Candidate original{"original", base::Json::object(), tuning::Role::original};
const tuning::Candidate fast{"fast"};

runtime::Samples times_of(double original_us, double candidate_us) {
    return {std::vector<double>(20, original_us), std::vector<double>(20, candidate_us)};
}

std::int64_t median_of(const Measurements& known, const tuning::Candidate& candidate) {
    return known.find(a_call(), candidate)->times.median;
}

}  // namespace

TEST_CASE("what a run has measured the next one knows") {
    const test::TempFolder folder;
    Measurements first = measurements_in(folder);
    first.look_up(a_call());
    CHECK(first.find(a_call(), fast) == nullptr);
    first.measured(a_call(), original, fast, times_of(100, 50));
    CHECK(median_of(first, original) == 100'000);
    CHECK(median_of(first, fast) == 50'000);
    CHECK(first.is_new(*first.find(a_call(), fast)));

    Measurements second = measurements_in(folder);
    CHECK(second.find(a_call(), fast) == nullptr);
    second.look_up(a_call());
    REQUIRE(second.find(a_call(), fast) != nullptr);
    CHECK(median_of(second, fast) == 50'000);
    CHECK(!second.is_new(*second.find(a_call(), fast)));
    CHECK(second.find(a_call(64), fast) == nullptr);
    CHECK(second.warnings().empty());
}

TEST_CASE("times are ratios to those of the original in the same turn") {
    const test::TempFolder folder;
    Measurements known = measurements_in(folder);
    known.measured(a_call(), original, fast, times_of(100, 50));
    const tuning::Candidate other{"other"};
    known.measured(a_call(), original, other, times_of(300, 150));  // the machine was slow
    CHECK(median_of(known, original) == 100'000);
    CHECK(median_of(known, other) == 50'000);
}

TEST_CASE("candidates are measured beside an original that once had a problem") {
    const test::TempFolder folder;
    Measurements known = measurements_in(folder);
    known.banned(a_call(), original, problem, true);
    known.measured(a_call(), original, fast, times_of(100, 50));
    CHECK(median_of(known, fast) == 50'000);
    CHECK(known.find(a_call(), fast)->times.baseline == 100'000);
}

TEST_CASE("what ended a child is forgotten with the run, what is wrong is not") {
    const test::TempFolder folder;
    Measurements first = measurements_in(folder);
    first.banned(a_call(), fast, problem, true);
    first.banned(a_call(), {"deadly"}, "it has ended its process", false);
    CHECK(first.find(a_call(), {"deadly"})->problem == "it has ended its process");
    Measurements second = measurements_in(folder);
    second.look_up(a_call());
    CHECK(second.find(a_call(), fast)->problem == problem);
    CHECK(second.find(a_call(), {"deadly"}) == nullptr);
}

TEST_CASE("one run at a time measures a kind of call") {
    const test::TempFolder folder;
    constexpr std::chrono::seconds long_enough(60);
    Measurements first = measurements_in(folder), second = measurements_in(folder);
    CHECK(first.take(a_call(), long_enough));
    CHECK(first.take(a_call(), long_enough));  // still
    CHECK(!second.take(a_call(), long_enough));
    CHECK(second.take(a_call(64), long_enough));
    first.measured(a_call(), original, fast, times_of(100, 50));
    second.look_up(a_call());
    first.release();
    CHECK(second.take(a_call(), long_enough));
    CHECK(median_of(second, fast) == 50'000);  // taking it has read what is there
}

TEST_CASE("calls are looked up once, until others may have measured") {
    const test::TempFolder folder;
    Measurements first = measurements_in(folder), second = measurements_in(folder);
    second.look_up(a_call());
    first.measured(a_call(), original, fast, times_of(100, 50));
    second.look_up(a_call());
    CHECK(second.find(a_call(), fast) == nullptr);
    second.look_again();
    second.look_up(a_call());
    CHECK(second.find(a_call(), fast) != nullptr);
}

TEST_CASE("a store that cannot be used is a warning") {
    const test::TempFolder folder;
    std::ofstream(folder / "file") << "no folder";
    Measurements known(tuning::Store(folder / "file"), "cpu", 1);
    CHECK(known.take(a_call(), std::chrono::seconds(60)));
    known.measured(a_call(), original, fast, times_of(100, 50));
    CHECK(median_of(known, fast) == 50'000);
    REQUIRE(known.warnings().size() == 1);
    CHECK(known.warnings().begin()->starts_with("what was measured is not remembered in "));
}

TEST_CASE("a candidate goes by its content, not by its place in the mapping") {
    const test::MadeUpSite one, other;
    const tuning::Candidate candidate = worker::candidate_of(one.choice(0));
    CHECK(candidate.cfg == base::Json{{"function", "fast"}});
    CHECK(candidate.id() == worker::candidate_of(other.choice(0)).id());
    CHECK(candidate.id() != worker::candidate_of(one.choice(1)).id());
    runtime::Choice configured = one.choice(0);
    configured.cfg["way"] = std::int64_t{2};
    CHECK(worker::candidate_of(configured).cfg == base::Json{{"function", "fast"}, {"way", 2}});
    CHECK(worker::candidate_of(configured).build == candidate.build);
}
