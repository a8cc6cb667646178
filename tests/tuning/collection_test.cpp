#include "tuning/collection.h"

#include "base/throws.h"
#include "catch.h"
#include "tuning/samples.h"

using namespace twinkle;
using test::error_of;

TEST_CASE("an export is sorted, for people to review") {
    tuning::Entries entries;
    tuning::join(entries, test::an_entry(1000));
    const std::string text = tuning::export_text(entries);
    CHECK(text.find("\"median_ns\": 1000") != std::string::npos);
    CHECK(text.find("\"model\": \"a CPU\"") != std::string::npos);
    CHECK(tuning::export_text({}) ==
          "{\n  \"environments\": [],\n  \"schema\": \"twinkle.tuning/1\"\n}\n");
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
         {std::string("{"), std::string("[]"), with("twinkle.tuning/1", "twinkle.tuning/9"),
          with("a CPU", "a forged CPU"), with("\"median_ns\": 1000", "\"median_ns\": 1"),
          with("\"median_ns\": 1000", "\"median_ns\": 1000.5"),
          with("\"median_ns\": 1000", "\"median_ns\": -1"), with("\"role\"", "\"rule\""),
          with("\"threads\": 128", "\"threads\": [128]")}) {
        const auto error = error_of([&] { tuning::read_export(bad, "file.json"); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::malformed);
        CHECK_THAT(error->details().where, ContainsSubstring("file.json:"));
    }
}
