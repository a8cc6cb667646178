#include "tuning/entry.h"

#include <algorithm>

#include "catch.h"
#include "tuning/collection.h"
#include "tuning/samples.h"

using namespace twinkle;
using namespace twinkle::tuning;
using test::an_entry;

namespace {

std::ptrdiff_t chosen(const std::vector<Entry>& entries) {
    std::vector<const Entry*> all;
    for (const Entry& entry : entries) {
        all.push_back(&entry);
    }
    return choose(all);
}

Entries joined(const std::vector<Entry>& entries) {
    Entries all;
    for (const Entry& entry : entries) {
        join(all, entry);
    }
    return all;
}

}  // namespace

TEST_CASE("the fastest is chosen, but ties go to the original and then to the rule") {
    const Entry original = an_entry(1000, 1, Role::original);
    const Entry rule = an_entry(1000, 2, Role::rule);
    CHECK(chosen({an_entry(500), rule, original}) == 0);
    CHECK(chosen({an_entry(985), rule, original}) == 2);  // inside of 2 %
    CHECK(chosen({an_entry(985), rule}) == 1);
    Entry noisy = an_entry(800, 3);
    noisy.times = {500, 800, 1100, 10};
    CHECK(chosen({noisy, original}) == 1);  // the quartiles overlap
    CHECK(chosen({original, an_entry(500), rule}) == 1);
}

TEST_CASE("candidates of two runs are compared beside the same baseline") {
    const auto measured = [](std::int64_t median, std::int64_t baseline, int threads, Role role) {
        Entry entry = an_entry(median, threads, role);
        entry.times.baseline = baseline;
        return entry;
    };
    const Entry original = measured(1000, 1000, 1, Role::original);
    const Entry one = measured(800, 1000, 2, Role::other);
    const Entry slow_day = measured(1500, 2000, 3, Role::other);
    CHECK(chosen({original, one, slow_day}) == 2);
    CHECK(chosen({slow_day, one, original}) == 0);
    CHECK(chosen({original, measured(1900, 2000, 4, Role::other)}) == 1);
    CHECK(chosen({original, measured(2000, 2000, 4, Role::other)}) == 0);
    CHECK(chosen({original, an_entry(1500, 5)}) == 0);  // where no baseline is known, as it is
    // What was measured before baselines were kept: an original's is its own median.
    const Entry old_rule = measured(200, 0, 6, Role::rule);
    CHECK(chosen({old_rule, measured(120, 100, 7, Role::other)}) == 0);
    CHECK(chosen({measured(100, 0, 6, Role::original), measured(150, 200, 7, Role::other)}) == 1);
    Entry banned = old_rule;
    banned.problem = "wrong values";
    CHECK(chosen({banned, measured(800, 1000, 7, Role::other), measured(1500, 2000, 8, Role::other),
                  an_entry(5000, 9)}) == 2);
    const Times scaled = beside(slow_day.times, 1000);
    CHECK(scaled == Times{743, 750, 758, 10, 1000});
    const Times large = beside({1, INT64_MAX, INT64_MAX, 1, 1}, INT64_MAX);
    CHECK((large.lower <= large.median && large.median <= large.upper));
}

TEST_CASE("baselines are kept in files, and those without are read") {
    Entry entry = an_entry(1000);
    Rejected rejected;
    CHECK(read_entry_file(entry_file(entry), "file", rejected)->times.baseline == 0);
    entry.times.baseline = 1234;
    CHECK(read_entry_file(entry_file(entry), "file", rejected)->times == entry.times);
    const Entries all = joined({entry});
    CHECK(read_export(export_text(all), "file").begin()->second.times == entry.times);
}

TEST_CASE("what is wrong or was never run is not chosen") {
    Entry wrong = an_entry(10);
    wrong.problem = "wrong values";
    const Entry never = an_entry(10, 64, Role::other, 0);
    CHECK(chosen({wrong, an_entry(1000, 1, Role::original)}) == 1);
    CHECK(chosen({wrong, never}) == -1);
    CHECK(chosen({}) == -1);
}

TEST_CASE("times that nobody can have measured are no measurement") {
    const auto is_read = [](const Entry& entry) {
        Rejected rejected;
        const bool in_file = read_entry_file(entry_file(entry), "file", rejected).has_value();
        bool in_export = true;
        try {
            read_export(export_text(joined({entry})), "export");
        } catch (const Error&) {
            in_export = false;
        }
        CHECK(in_file == in_export);
        return in_file;
    };
    const auto with = [](std::int64_t lower, std::int64_t upper, std::int64_t runs) {
        Entry entry = an_entry(upper);
        entry.times = {lower, upper, upper, runs};
        return entry;
    };
    CHECK(is_read(with(1, 1000, 1)));
    CHECK_FALSE(is_read(with(0, 1000, 5)));
    CHECK_FALSE(is_read(with(0, 0, 5)));
    CHECK_FALSE(is_read(with(10, 1000, 0)));
    CHECK_FALSE(is_read(with(10, INT64_MAX, 5)));
    Entry banned = with(0, 0, 0);
    banned.problem = "wrong values";
    CHECK(is_read(banned));
}

TEST_CASE("a choice does not depend on the order of the entries") {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<Entry> entries;
        for (int i = 0; i < 5; ++i) {
            entries.push_back(
                an_entry(900 + random() % 200, 100 + i, static_cast<Role>(random() % 3)));
        }
        const auto taken = entries[static_cast<std::size_t>(chosen(entries))].identity();
        std::shuffle(entries.begin(), entries.end(), random);
        CHECK(entries[static_cast<std::size_t>(chosen(entries))].identity() == taken);
    }
}

TEST_CASE("joining commutes, associates and changes nothing twice") {
    std::mt19937 random(11);
    for (int round = 0; round < 100; ++round) {
        std::vector<Entry> entries;
        for (int i = 0; i < 40; ++i) {
            entries.push_back(test::random_entry(random));
        }
        const std::string all = export_text(joined(entries));
        std::shuffle(entries.begin(), entries.end(), random);
        CHECK(export_text(joined(entries)) == all);
        // In parts, as machines would.
        const std::vector<Entry> first(entries.begin(), entries.begin() + 15);
        const std::vector<Entry> second(entries.begin() + 10, entries.end());
        Entries merged = joined(second);
        for (const auto& [identity, entry] : joined(first)) {
            join(merged, entry);
        }
        CHECK(export_text(merged) == all);
    }
}

TEST_CASE("of two for the same the better measured stays, and a problem is not forgotten") {
    const Entry few = an_entry(900, 128, Role::other, 5);
    const Entry many = an_entry(1000, 128, Role::other, 50);
    CHECK(joined({few, many}).begin()->second.times.runs == 50);
    Entry wrong = few;
    wrong.problem = "wrong values";
    CHECK(joined({wrong, many}).begin()->second.problem == "wrong values");
}

TEST_CASE("entries of another device or build are kept apart") {
    Entry other_device = an_entry(1000);
    other_device.environment = test::an_environment("another CPU");
    Entry other_build = an_entry(1000);
    other_build.candidate.build = "another";
    const Entries all = joined({an_entry(1000), other_device, other_build});
    CHECK(all.size() == 3);
    const Entries back = read_export(export_text(all), "file");
    CHECK(export_text(back) == export_text(all));
}

TEST_CASE("a mutated file is a miss, or says what it said") {
    const Entry entry = an_entry(1000);
    const std::string file = entry_file(entry);
    Rejected rejected;
    REQUIRE(read_entry_file(file, "file", rejected)->text() == entry.text());
    std::mt19937 random(3);
    const auto byte = [&] { return static_cast<char>(random()); };
    for (int round = 0; round < 20'000; ++round) {
        std::string mutated = file;
        const std::size_t at = random() % mutated.size();
        switch (random() % 5) {
            case 0: mutated[at] = byte(); break;
            case 1: mutated.resize(at); break;
            case 2: mutated.insert(at, 1, byte()); break;
            case 3: mutated.erase(at, 1 + random() % 20); break;
            default: mutated += mutated.substr(at);
        }
        const auto read = read_entry_file(mutated, "file", rejected);
        if (read && read->environment == entry.environment) {
            CHECK(read->text() == entry.text());
        } else if (!read) {
            CHECK_FALSE(rejected.why.empty());
        }
    }
}

TEST_CASE("files of other versions and other things are told apart") {
    Rejected rejected;
    CHECK_FALSE(read_entry_file(R"({"schema": "twinkle.tuned/3", "new": 1})", "file", rejected));
    CHECK(rejected.miss == Miss::other_version);
    CHECK_FALSE(read_entry_file(R"({"schema": "something else"})", "file", rejected));
    CHECK(rejected.miss == Miss::damaged);
    CHECK_FALSE(read_entry_file(std::string(1 << 20, ' '), "file", rejected));
    CHECK(rejected.miss == Miss::too_large);
    CHECK_FALSE(read_entry_file(std::string(1000, '['), "file", rejected));
    CHECK(rejected.miss == Miss::damaged);
}
