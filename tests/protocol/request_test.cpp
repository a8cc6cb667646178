#include "protocol/request.h"

#include "catch.h"
#include "twinkle/error.h"

using twinkle::base::Json;
using twinkle::protocol::Request;

namespace {

// Every field with a value that is not its default.
Request all_set() {
    Request request;
    request.command = "kernelize";
    request.model = "/m/model.pt";
    request.output = "/m/fast.pt";
    request.report = "/m/report.json";
    request.map = R"({"schema": "twinkle.map/1"})";
    request.choices = R"({"sites": []})";
    request.build = {{"variant", "torch213-cpu"}};
    request.mode = "training";
    request.device = "cuda:1";
    request.dtype = "bfloat16";
    request.inputs = "int64[1,8]:0..32";
    request.graph = "my.Class";
    request.kernel = "/k/build";
    request.model_name = "decoder";
    request.method = "generate";
    request.only = {"a.*", "b"};
    request.exclude = {"c"};
    request.fallback = {"no-layer"};
    request.warnings = {"mind the gap"};
    request.kernel_dirs = {"/k", "/l"};
    request.threads = 4;
    request.duration = 2.5;
    request.runs = 7;
    request.warm_up = 0;
    request.load_kernels = false;
    request.verify = true;
    request.sizes = false;
    request.tolerance = 4;
    request.precisions = {"int8"};
    request.max_error = 0.02;
    request.agree = 0.99;
    request.tune = true;
    request.measure = true;
    request.modules = true;
    request.tune_sizes = {1, 16};
    request.shard = 3;
    request.shards = 8;
    request.gpu = 1;
    request.invocations = {"key"};
    request.more_inputs = {"other.pt"};
    request.recorded_model = "__torch__.Model";
    request.inputs_recorded = true;
    request.strict = true;
    request.dry_run = true;
    request.strip_debug = true;
    request.graphs = true;
    request.freeze = true;
    request.profile_names = true;
    request.allow_io = true;
    return request;
}

}  // namespace

TEST_CASE("a request arrives as it was sent") {
    const Json sent = all_set().to_json();
    CHECK(Request::parse(sent.dump()).to_json() == sent);
    const Json defaults = Request().to_json();
    CHECK(Request::parse(defaults.dump()).to_json() == defaults);
    // Each field has its own key, and none is lost on the way.
    for (const auto& [key, value] : sent.items()) {
        CHECK((key == "schema" || value != defaults.at(key)));
    }
    CHECK(sent.size() == defaults.size());
}

TEST_CASE("what is missing, or of another type, has its default") {
    const Json defaults = Request().to_json();
    CHECK(Request::parse(R"({"schema": "twinkle.request/1"})").to_json() == defaults);
    Json wrong = all_set().to_json();
    for (auto& [key, value] : wrong.items()) {
        if (key != "schema" && key != "build") {
            value = Json::object();
        }
    }
    wrong.erase("build");
    CHECK(Request::parse(wrong.dump()).to_json() == defaults);
    CHECK(Request::parse(R"({"schema": "twinkle.request/1", "threads": -1, "runs": 1.5})")
              .to_json() == defaults);
}

TEST_CASE("a request of another version is refused") {
    for (const char* text : {"", "[]", "{}", R"({"schema": "twinkle.request/2"})"}) {
        CHECK_THROWS_AS(Request::parse(text), twinkle::Error);
    }
}
