// Sites as ranges of the profiler, in models whose instances share classes.

#include "runtime/plan/site_ranges.h"
#include "runtime/scripted.h"

#include <sstream>

// After LibTorch.
#include "catch.h"

using namespace twinkle::runtime;

TEST_CASE("an instance that is no site shares its class with one that is") {
    const auto layer =
        twinkle::tests::module_of("Layer", "def forward(self, x):\n    return x + 1\n");
    torch::jit::Module root("Root");
    root.register_attribute("training", c10::BoolType::get(), false);
    const torch::jit::Module same(layer.type()->compilation_unit(), layer.type());
    same._ivalue()->setAttr("weight", layer.attr("weight"));
    root.register_module("first", layer);
    root.register_module("second", same);
    root.define("def forward(self, x):\n    return self.second.forward(self.first.forward(x))\n");
    REQUIRE(root.attr("first").toModule().type() == root.attr("second").toModule().type());

    add_ranges(root, {"first"});
    std::stringstream saved;
    root.save(saved);
    torch::jit::Module loaded = torch::jit::load(saved);
    CHECK(loaded.attr("first").toModule().attr("twinkle_range").toStringRef() == "first");
    CHECK(loaded.attr("second").toModule().attr("twinkle_range").toStringRef() == "second");
    CHECK(loaded.forward({torch::zeros({2})}).toTensor().equal(torch::full({2}, 2.0)));
    CHECK_NOTHROW(root.deepcopy());
}
