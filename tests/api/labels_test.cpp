// Labels: what serves each site, read back from a model; ranges of the profiler.

#include "api/tuned_operation.h"
#include "error_code.h"

#include <ATen/record_function.h>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using tests::code_of;

TEST_CASE("labels are found in a model, and turned back into configurations") {
    const std::string text =
        R"({"schema":"twinkle.labels/1","sites":[{"site":"norm","kind":"layer","of":"RMSNorm",
        "because":"faster","serves":[{"from":0,"up_to":32,"kernel":"a: Norm","build":"ab",
        "cfg":{"layer":"Norm","grain":4096}},{"from":33,"up_to":null,"kernel":null,"build":null,
        "cfg":null}]},{"site":3},7]})";
    torch::jit::Module model("Labelled");
    CHECK(find_labels(model).empty());
    model.register_attribute("twinkle_labels", c10::StringType::get(), text);
    const auto labels = find_labels(model);
    REQUIRE(labels.size() == 1);
    CHECK(labels[0].of == "RMSNorm");
    REQUIRE(labels[0].serves.size() == 2);
    CHECK(labels[0].serves[0].up_to == 32);
    CHECK(labels[0].serves[1].from == 33);
    CHECK(labels[0].serves[1].kernel.empty());
    CHECK(find_labels(R"({"labels":)" + text.substr(text.find('['))).size() == 1);
    CHECK(code_of([] { find_labels("no JSON"); }) == ErrorCode::malformed);
    const auto configs = labels_to_configs(labels);
    const CfgFields expected{{"layer", "Norm"}, {"grain", std::int64_t{4096}}};
    CHECK((configs.at("norm").at(0).cfg == expected));
    CHECK(configs.at("norm").at(1).cfg.empty());
    CHECK_FALSE(configs.at("norm").at(1).up_to);
}

TEST_CASE("labels say by which elements calls choose; the model itself may be a site") {
    const auto labels = find_labels(
        R"({"sites":[{"site":"","of":"Model","input":1,"serves":[{"kernel":"a: Norm","up_to":32,
        "elements":2048},{"kernel":"b: Norm"}]}]})");
    REQUIRE(labels.size() == 1);
    CHECK(labels[0].input == 1);
    CHECK(labels[0].serves.at(0).elements == 2048);
    CHECK_FALSE(labels[0].serves.at(1).elements);
}

TEST_CASE("a label is a range of the profiler") {
    static std::vector<std::string> seen;
    const auto callback = at::addGlobalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& function)
                                       -> std::unique_ptr<at::ObserverContext> {
            seen.emplace_back(function.name());
            return nullptr;
        }).scopes({at::RecordScope::USER_SCOPE}));
    {
        const label scope("decoding");
        torch::ones({2}).add(1);
    }
    at::removeCallback(callback);
    CHECK(seen == std::vector<std::string>{"decoding"});
}
