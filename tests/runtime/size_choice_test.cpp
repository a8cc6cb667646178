// The choice by size in a graph.

#include "runtime/dispatch/size_choice.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/irparser.h>
#include <torch/script.h>

#include <sstream>

// After LibTorch.
#include "catch.h"

using namespace twinkle::runtime;
namespace jit = torch::jit;

namespace {

// forward(x): x times the number of the alternative, whose bounds these are but for the last.
std::shared_ptr<jit::Graph> numbered(const std::vector<std::int64_t>& bounds) {
    auto graph = std::make_shared<jit::Graph>();
    jit::Value* x = graph->addInput("x");
    std::vector<Alternative> alternatives;
    for (std::size_t i = 0; i <= bounds.size(); ++i) {
        alternatives.push_back({i < bounds.size() ? bounds[i] : 0, [x, i](jit::Graph& into) {
                                    jit::Value* number =
                                        into.insertConstant(static_cast<std::int64_t>(i));
                                    return into.insert(c10::aten::mul, {x, number});
                                }});
    }
    REQUIRE(has_elements(x));
    const jit::WithInsertPoint at(graph->block());
    graph->registerOutput(insert_choice(*graph, x, alternatives));
    graph->lint();
    return graph;
}

jit::Module module_of_graph(const std::shared_ptr<jit::Graph>& graph) {
    const auto unit = std::make_shared<jit::CompilationUnit>();
    jit::Module module(c10::QualifiedName("__torch__.Choosing"), unit);
    graph->insertInput(0, "self")->setType(module.type());
    module.type()->addMethod(
        unit->create_function(c10::QualifiedName("__torch__.Choosing.forward"), graph));
    return module;
}

std::int64_t chosen(jit::Module& module, const at::Tensor& x) {
    const at::Tensor y = module.forward({x}).toTensor();
    return y.numel() == 0 ? -1 : y.flatten()[0].item<std::int64_t>();
}

std::size_t decisions(const std::string& graph) {
    std::size_t count = 0;
    for (auto at = graph.find("prim::If"); at != std::string::npos;
         at = graph.find("prim::If", at + 1)) {
        ++count;
    }
    return count;
}

}  // namespace

TEST_CASE("each call takes the alternative for its number of elements, after saving too") {
    const std::vector<std::int64_t> bounds{1, 64, 100, 4096};
    jit::Module module = module_of_graph(numbered(bounds));
    std::stringstream bytes;
    module.save(bytes);
    jit::Module loaded = jit::load(bytes);
    for (jit::Module* one : {&module, &loaded}) {
        for (const std::int64_t elements : {1, 2, 64, 65, 100, 101, 4096, 4097, 100000}) {
            const auto expected = std::lower_bound(bounds.begin(), bounds.end(), elements);
            CHECK(chosen(*one, at::ones({elements}, at::kLong)) == expected - bounds.begin());
            CHECK(chosen(*one, at::ones({1, elements, 1}, at::kLong)) == expected - bounds.begin());
        }
        CHECK(chosen(*one, at::ones({}, at::kLong)) == 0);  // no dimension
        CHECK(chosen(*one, at::ones({0, 7}, at::kLong)) == -1);
    }
}

TEST_CASE("decisions are nested by halves, and one alternative needs none") {
    const auto two = numbered({8})->toString();
    CHECK(decisions(two) == 1);
    const auto eight = numbered({1, 2, 4, 8, 16, 32, 64});
    CHECK(decisions(eight->toString()) == 7);
    std::size_t deepest = 0;
    const std::function<void(jit::Block*, std::size_t)> look = [&](jit::Block* block,
                                                                   std::size_t depth) {
        deepest = std::max(deepest, depth);
        for (jit::Node* node : block->nodes()) {
            for (jit::Block* inner : node->blocks()) {
                look(inner, depth + 1);
            }
        }
    };
    look(eight->block(), 0);
    CHECK(deepest == 3);
    const auto one = numbered({})->toString();
    CHECK(decisions(one) == 0);
    CHECK(one.find("numel") == std::string::npos);
}
