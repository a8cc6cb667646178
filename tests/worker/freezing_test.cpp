// Freezing a model computes what its code does with constants: in a child process.

#include "worker/freezing.h"

#include "base/temp_folder.h"

#include <ATen/record_function.h>
#include <torch/csrc/jit/serialization/import.h>

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

bool has_run = false;  // NOLINT(*-avoid-non-const-global-variables): for a callback

bool computes_constant(const torch::jit::Module& model) {
    return model.get_method("forward").graph()->toString(false).find("aten::full") !=
           std::string::npos;
}

}  // namespace

TEST_CASE("constants of a model are computed in a child") {
    const test::TempFolder folder;
    torch::jit::Module model("Model");
    model.register_attribute("training", c10::BoolType::get(), false);
    model.define("def forward(self, x: Tensor):\n    return x + torch.full([4], 3.0)\n");
    model.save(folder / "model.pt");
    protocol::Request request;
    request.model = folder / "model.pt";
    request.output = folder / "frozen.pt";
    Kernelized made{model, {}};
    made.report.device = "cpu";

    has_run = false;
    const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
            has_run = has_run || function.name() == std::string("aten::full");
            return nullptr;
        }));
    worker::save_frozen(made, request);
    CHECK(!has_run);
    torch::jit::freeze(model);
    CHECK(has_run);  // here that would have been seen
    at::removeCallback(handle);

    torch::jit::Module frozen = torch::jit::load(folder / "frozen.pt");
    CHECK(computes_constant(model));
    CHECK(!computes_constant(frozen));
    CHECK(at::equal(frozen.forward({at::zeros({4})}).toTensor(), at::full({4}, 3.0)));
}

TEST_CASE("a report says what was chosen, why, and what was measured") {
    CHECK(worker::Freezing().json() ==
          base::Json{{"chosen", true}, {"because", "asked for"}, {"sizes", base::Json::array()}});
    const worker::Freezing slower{false, "it is slower", {{{"size", "given"}}}};
    CHECK(slower.json()["chosen"] == false);
    CHECK(slower.json()["sizes"][0]["size"] == "given");
}
