// Calls of a running program are noted, and tuned later.

#include "api/tuned_operation.h"
#include "error_code.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using tests::code_of;
using tests::in_memory;
using tests::Scale;
using tests::When;

namespace {

using Two = std::tuple<at::Tensor, at::Tensor>;

// Takes a tuple and a list, and gives a tuple with a list in it.
struct Sums : Operation<tests::Cfg> {
    using Result = std::tuple<at::Tensor, std::vector<at::Tensor>>;
    std::string name() const override { return "tests::sums"; }
    std::vector<tests::Cfg> config_space(const Invocation&) const override {
        return {{.work = 1}, {.work = 2}, {.work = 1, .wrong = true}};
    }
    Result run(const Two& two, const std::vector<at::Tensor>& list, const tests::Cfg& cfg) const {
        at::Tensor sum = std::get<0>(two) + std::get<1>(two);
        std::vector<at::Tensor> each;
        for (const at::Tensor& one : list) {
            each.push_back(one + (cfg.wrong ? 1 : 0));
            sum = sum + one;
        }
        return {sum, each};
    }
};

// One tuple alone.
struct Both : Operation<tests::Cfg> {
    std::string name() const override { return "tests::both"; }
    Two run(const Two& two, const tests::Cfg&) const {
        return {std::get<1>(two), std::get<0>(two)};
    }
};

}  // namespace

TEST_CASE("calls are recorded without their data, and tuned later") {
    clear_invocations();
    const Executor executor = in_memory();
    const Scale scale;
    const at::Tensor x = torch::randn({64, 64});
    executor(scale, x, 2.0);
    CHECK(get_invocations().empty());
    {
        const recording scope;
        executor(scale, x, 2.0);
        executor(scale, x, 2.0);
        executor(scale, torch::randn({128, 64}), 2.0);
    }
    executor(scale, torch::randn({256, 64}), 2.0);
    CHECK(get_invocations().size() == 2);
    CHECK(get_invocations().front() == executor.invocation(scale, x, 2.0));
    record_invocation({.operation = "by hand"});
    const auto tuned = autotune_recorded(executor);
    REQUIRE(tuned.size() == 3);
    CHECK(tuned[0].measurement.best == 1);
    CHECK(tuned[1].measurement.best == 1);
    CHECK_THAT(tuned[2].problem, ContainsSubstring("by hand"));
    CHECK(executor.choose(scale, x, 2.0).by == ChosenBy::memory);
    const policy_override never(When::never);
    CHECK(code_of([&] { autotune_recorded(executor); }) == ErrorCode::refused);
    clear_invocations();
    for (int i = 0; i < 10'005; ++i) {
        record_invocation({.operation = std::to_string(i)});
    }
    CHECK(get_invocations().size() == 10'000);
    CHECK(lost_invocations() == 5);
    clear_invocations();
}

TEST_CASE("calls with tuples and lists are recorded and tuned") {
    clear_invocations();
    const Executor executor = in_memory();
    const at::Tensor x = torch::randn({4, 8});
    const std::vector<at::Tensor> list{x, x};
    {
        const recording scope;
        const auto [sum, each] = executor(Sums(), Two(x, x), list);
        CHECK(at::allclose(sum, x * 4));
        CHECK(each.size() == 2);
        executor(Sums(), Two(x, x), std::vector{x, x, x});
        executor(Both(), Two(x, torch::randn({2, 8})));
    }
    CHECK(get_invocations().size() == 3);
    const Invocation call = executor.invocation(Sums(), Two(x, x), list);
    REQUIRE(call.inputs.size() == 6);
    CHECK(call.inputs[0] == AbstractInput{.dtype = "tuple", .value = "2"});
    CHECK(call.inputs[3] == AbstractInput{.dtype = "list", .value = "2"});
    CHECK(Invocation::from_key(call.key()) == call);
    const auto tuned = autotune_recorded(executor);
    REQUIRE(tuned.size() == 3);
    for (const RecordedTuning& one : tuned) {
        INFO(one.invocation.key());
        CHECK(one.problem == "");
    }
    REQUIRE(tuned[0].measurement.candidates.size() == 3);
    CHECK(tuned[0].measurement.candidates[1].problem == "");
    CHECK(tuned[0].measurement.candidates[2].problem == "wrong values");
    CHECK(executor.choose(Sums(), Two(x, x), list).by == ChosenBy::memory);
    clear_invocations();
}

TEST_CASE("calls are recorded in a file, of executors and of kernelized models alone") {
    const tests::Folder folder;
    const auto file = folder.path() / "calls.jsonl";
    torch::jit::Module plain("Plain"), kernelized("Kernelized");
    plain.define("def forward(self, x):\n    return x + 1\n");
    kernelized.register_attribute("twinkle_labels", c10::StringType::get(), "{}");
    kernelized.define("def forward(self, x, y: Optional[Tensor] = None):\n    return x * 2\n");
    torch::jit::Module parts("Parts");
    parts.register_attribute("twinkle_labels", c10::StringType::get(), "{}");
    parts.define(
        "def forward(self, x: Tuple[Tensor, Tensor], y: List[Tensor]):\n"
        "    return x[0] + x[1] + y[0]\n");
    const Executor executor = in_memory();
    const Scale scale;
    {
        const recording scope(file);
        CHECK(code_of([&] { const recording second(folder.path() / "other.jsonl"); }) ==
              ErrorCode::refused);
        for (int i = 0; i < 3; ++i) {
            plain.forward({torch::ones({2, 3})});
            kernelized.forward({torch::ones({2, 3})});
            kernelized.forward({torch::ones({60, 3})});
            kernelized.forward({torch::ones({61, 3})});  // the same power of two
            kernelized.forward({torch::ones({7}, torch::kLong)});
            executor(scale, torch::randn({64, 64}), 2.0);
            const at::Tensor one = torch::ones({2, 3});
            parts.forward({std::make_tuple(one, one), std::vector<at::Tensor>{one}});
            parts.forward({std::make_tuple(one, one), std::vector<at::Tensor>{one, one}});
        }
        std::thread([&] { kernelized.forward({torch::ones({2, 3})}); }).join();
    }
    kernelized.forward({torch::ones({2, 4})});
    const std::string text{std::istreambuf_iterator<char>(std::ifstream(file).rdbuf()), {}};
    CHECK_THAT(text,
               ContainsSubstring(R"({"inputs":"float32[2,3]","model":"Kernelized","record":1})"));
    CHECK_THAT(text, ContainsSubstring(R"("float32[60,3]")"));
    CHECK_THAT(text, ContainsSubstring(R"("int64[7]")"));
    CHECK_THAT(text, ContainsSubstring(R"("(float32[2,3];float32[2,3]);[float32[2,3]]")"));
    CHECK_THAT(text, ContainsSubstring("tests::scale"));
    std::size_t runs = 0;
    for (auto at = text.find("\"inputs\":\""); at != std::string::npos; ++runs) {
        at = text.find("\"inputs\":\"", at + 1);
    }
    CHECK(runs == 5);
    CHECK_FALSE(std::filesystem::exists(folder.path() / "other.jsonl"));
    CHECK(code_of([&] { const recording nowhere(folder.path() / "no/calls.jsonl"); }) ==
          ErrorCode::failed);
}

TEST_CASE("a recorded call of a bundled kernel is repeated and tuned") {
    const Executor executor(ops::selector());
    const Invocation invocation{
        .operation = "twinkle-pack::rms_norm",
        .inputs = {{.dtype = "float32", .sizes = {16, 64}, .layout = "dense", .alignment = 16},
                   {.dtype = "none"},
                   {.dtype = "float"},
                   {.dtype = "float"},
                   {.dtype = "bool", .value = "false"}}};
    const Measurement measured = ops::tune_recorded(invocation, {.num_iters = 3});
    CHECK(measured.candidates.size() >= 2);
    Invocation other = invocation;
    other.inputs.pop_back();
    CHECK(code_of([&] { ops::tune_recorded(other); }) == ErrorCode::malformed);
    other = invocation;
    other.inputs[0].sizes = {1 << 30, 1 << 30};
    CHECK(code_of([&] { ops::tune_recorded(other); }) == ErrorCode::malformed);
    other.operation = "mine::norm";
    CHECK(code_of([&] { ops::tune_recorded(other); }) == ErrorCode::not_found);
}
