#include "tuning/collection.h"

#include "base/throws.h"
#include "catch.h"
#include "tuning/samples.h"

#include <algorithm>

using namespace twinkle;
using test::error_of;

TEST_CASE("an export is sorted, for people to review") {
    tuning::Entries entries;
    tuning::join(entries, test::an_entry(1000));
    const std::string text = tuning::export_text(entries);
    CHECK(text.find("\"median_ns\":1000") != std::string::npos);
    CHECK(text.find("\"model\":\"a CPU\"") != std::string::npos);
    CHECK(tuning::export_text({}) ==
          "{\n  \"environments\": [],\n  \"schema\": \"twinkle.tuning/2\"\n}\n");
}

TEST_CASE("an export has a line for each entry") {
    const auto lines_of = [](int count) {
        tuning::Entries entries;
        for (int i = 0; i < count; ++i) {
            tuning::Entry entry = test::an_entry(1000, i);
            entry.environment = test::an_environment(i % 2 == 0 ? "a CPU" : "another CPU");
            tuning::join(entries, entry);
        }
        const std::string text = tuning::export_text(entries);
        CHECK(tuning::export_text(tuning::read_export(text, "file")) == text);
        return std::ranges::count(text, '\n');
    };
    CHECK(lines_of(12) == lines_of(2) + 10);
}

TEST_CASE("no export is written that is too large to be read") {
    tuning::Entries entries;
    for (int i = 0; i < 100; ++i) {
        tuning::join(entries, test::an_entry(1000, i));
    }
    const std::string text = tuning::export_text(entries);
    CHECK(tuning::export_text(entries, "file.json", text.size()) == text);
    const auto error =
        error_of([&] { tuning::export_text(entries, "file.json", text.size() - 1); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::refused);
    CHECK(error->details().where == "file.json");
    CHECK_THAT(error->details().why, ContainsSubstring("100 measurements"));
    CHECK_THAT(error_of([&] {
                   tuning::read_export(std::string(tuning::largest_export + 1, ' '), "file.json");
               })
                   ->details()
                   .why,
               ContainsSubstring("more than"));
}

TEST_CASE("what is no export says where and why") {
    tuning::Entries entries;
    tuning::join(entries, test::an_entry(1000));
    const std::string good = tuning::export_text(entries);
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        return text.replace(text.find(from), from.size(), to);
    };
    for (const std::string& bad :
         {std::string("{"), std::string("[]"), with("twinkle.tuning/2", "twinkle.tuning/9"),
          with("a CPU", "a forged CPU"), with("\"median_ns\":1000", "\"median_ns\":1"),
          with("\"median_ns\":1000", "\"median_ns\":1000.5"),
          with("\"median_ns\":1000", "\"median_ns\":-1"), with("\"role\"", "\"rule\""),
          with("\"threads\":128", "\"threads\":[128]")}) {
        const auto error = error_of([&] { tuning::read_export(bad, "file.json"); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::malformed);
        CHECK_THAT(error->details().where, ContainsSubstring("file.json:"));
    }
}
