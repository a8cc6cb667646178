#include "twinkle/report.h"

#include "base/json.h"
#include "catch.h"

using namespace twinkle;

TEST_CASE("the JSON of a report has the keys that scripts read") {
    Report report;
    report.mode = "inference";
    report.device = "cpu";
    report.sites.resize(3);
    report.sites[0].site = "model.norm";
    report.sites[0].status = SiteStatus::replaced;
    report.sites[0].kernel = "twinkle-pack: RMSNorm";
    report.sites[0].max_error = 1e-7;
    report.sites[1].status = SiteStatus::reverted;
    CHECK(report.count(SiteStatus::kept) == 1);

    const base::Json json = base::parse_json(report.to_json(), "report");
    CHECK(json["schema"] == "twinkle.kernelize/1");
    CHECK(json["replaced"] == 1);
    CHECK(json["kept"] == 1);
    CHECK(json["sites"][0]["status"] == "replaced");
    CHECK(json["sites"][0]["max_error"] == 1e-7);
    CHECK(json["sites"][1]["status"] == "reverted");
    CHECK(json["sites"][2]["kernel"].is_null());
    CHECK(json["mode"] == "inference");
    CHECK_FALSE(json["sites"][0].contains("by_size"));  // nothing was measured
    CHECK_FALSE(json.contains("tuning"));
}

TEST_CASE("the JSON of a tuned site says who serves which rows, and what was measured") {
    Report report;
    SiteReport& site = report.sites.emplace_back();
    site.by_size = {{0, 32, ""}, {33, std::nullopt, "pack: RMSNorm"}};
    site.measured = {{32, "", 12.5, "", true}, {64, "pack: RMSNorm", std::nullopt, "wrong"}};
    report.tuning = {.measured = 1, .known = 1};
    const base::Json whole = base::parse_json(report.to_json(), "report");
    const base::Json& json = whole["sites"][0];
    CHECK(whole["tuning"] == base::parse_json(R"({"measured": 1, "known": 1})", "test"));
    CHECK(json["by_size"] == base::parse_json(R"([{"from": 0, "up_to": 32, "kernel": null},
                               {"from": 33, "up_to": null, "kernel": "pack: RMSNorm"}])",
                                              "test"));
    CHECK(json["measured"] == base::parse_json(R"([
        {"rows": 32, "kernel": null, "us": 12.5, "problem": null, "from_store": true},
        {"rows": 64, "kernel": "pack: RMSNorm", "us": null, "problem": "wrong",
         "from_store": false}])",
                                               "test"));
}
