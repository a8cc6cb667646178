// Keyword arguments of operators as configurations.

#include "runtime/graph/operator_configuration.h"

#include <torch/csrc/jit/ir/irparser.h>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using runtime::configure_operators;
using runtime::keyword_defaults;
using runtime::operators_called;

TEST_CASE("what keyword arguments are where a call does not give them") {
    CHECK(to_json(keyword_defaults("aten", "gelu")) == R"({"approximate":"none"})");
    CHECK(to_json(keyword_defaults("aten", "baddbmm")) == R"({"alpha":1,"beta":1})");
    CHECK(keyword_defaults("aten", "clone").empty());      // its default is None
    CHECK(keyword_defaults("aten", "unsqueeze").empty());  // it has none
    CHECK(keyword_defaults("aten", "no_operator").empty());
}

TEST_CASE("operators get values for keyword arguments that they have") {
    const auto graph = std::make_shared<torch::jit::Graph>();
    torch::jit::parseIR(R"IR(
graph(%x : Tensor):
    %kind : str = prim::Constant[value="none"]()
    %y : Tensor = aten::gelu(%x, %kind)
    %z : Tensor = aten::relu(%y)
    return (%z))IR",
                        graph.get());
    CHECK(operators_called(*graph, "aten") == std::vector<std::string>{"gelu", "relu"});
    CHECK(!configure_operators(*graph, "aten", {{"no_argument", std::int64_t{3}}}));
    CHECK(!configure_operators(*graph, "aten", {{"approximate", std::int64_t{3}}}));  // no text
    CHECK(!configure_operators(*graph, "others", {{"approximate", std::string("tanh")}}));
    CHECK(configure_operators(*graph, "aten", {{"approximate", std::string("tanh")}}));
    CHECK(graph->toString(false).find("\"tanh\"") != std::string::npos);
}
