#include "runtime/graph/result_like.h"

#include "runtime/graph/graph_walk.h"

#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/script.h>

#include <algorithm>
#include <set>
#include <unordered_map>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

bool is_tensor(const jit::Value* value) {
    return value->type()->isSubtypeOf(*c10::TensorType::get());
}

// Without values nothing is computed, whatever the code of a model says, as long as it does not
// repeat anything and makes nothing from numbers alone.
bool harmless(const jit::Block* block) {
    return std::all_of(block->nodes().begin(), block->nodes().end(), [](const jit::Node* node) {
        if (node->kind() == c10::prim::If) {
            return std::all_of(node->blocks().begin(), node->blocks().end(), harmless);
        }
        static const std::set<std::string> plain = {
            "prim::Constant",    "prim::ListConstruct", "prim::TupleConstruct",
            "prim::TupleUnpack", "prim::ListUnpack",    "prim::ConstantChunk",
            "prim::dtype",       "prim::device",        "prim::unchecked_cast",
            "prim::NumToTensor", "prim::RaiseException"};
        if (plain.contains(node->kind().toQualString())) {
            return true;
        }
        const auto has = [](const auto& values) {
            return std::any_of(values.begin(), values.end(), is_tensor);
        };
        // A tensor on a device of its own would be a real one.
        const bool elsewhere =
            std::any_of(node->inputs().begin(), node->inputs().end(), [](const auto* value) {
                return value->node()->kind() == c10::prim::Constant &&
                       value->type()->kind() == c10::TypeKind::DeviceObjType;
            });
        const bool numbers =
            std::all_of(node->outputs().begin(), node->outputs().end(), [](const auto* value) {
                return value->type()->isSubtypeOf(*c10::NumberType::get()) ||
                       value->type()->isSubtypeOf(*c10::BoolType::get());
            });
        return node->kind().is_aten() && node->blocks().empty() && !elsewhere &&
               (has(node->inputs()) || numbers);
    });
}

constexpr std::size_t most_nodes = 10'000;
constexpr int deepest_result = 64;

// How many nodes a function has with all that it calls in their places; no more than is too many.
std::size_t inlined_size(jit::Function& function,
                         std::unordered_map<const jit::Function*, std::size_t>& known,
                         int depth = 0) {
    auto* compiled = jit::tryToGraphFunction(function);
    if (compiled == nullptr || depth > deepest_result) {
        return compiled == nullptr ? 1 : most_nodes;
    }
    if (const auto found = known.find(&function); found != known.end()) {
        return found->second;
    }
    std::size_t size = 0;
    for_each_node(compiled->graph()->block(), [&](const jit::Node* node) {
        ++size;
        if (node->kind() == c10::prim::CallFunction && size < most_nodes) {
            const auto& type = node->input(0)->type()->expectRef<c10::FunctionType>();
            size += inlined_size(*type.function(), known, depth + 1);
        }
    });
    return known[&function] = std::min(size, most_nodes);
}

struct Probe {
    std::vector<at::Tensor> inputs;  // undefined where the argument is no tensor
    at::Tensor result;
};

tl::expected<Probe, std::string> probe(const std::shared_ptr<jit::Graph>& graph,
                                       const std::vector<std::optional<c10::IValue>>& constants,
                                       std::vector<std::int64_t> shape, at::ScalarType dtype) {
    Probe made;
    jit::Stack stack;
    for (std::size_t i = 0; i < graph->inputs().size(); ++i) {
        made.inputs.emplace_back();
        if (i < constants.size() && constants[i]) {
            stack.push_back(*constants[i]);
        } else if (is_tensor(graph->inputs()[i])) {
            made.inputs.back() = at::empty(shape, at::TensorOptions(dtype).device(at::kMeta));
            stack.emplace_back(made.inputs.back());
        } else {
            return tl::make_unexpected("its argument " + graph->inputs()[i]->debugName() +
                                       " is computed");
        }
    }
    try {
        const torch::NoGradGuard no_grad;
        jit::Code code(graph, "result_like");
        jit::InterpreterState(code).run(stack);
        made.result = stack.front().toTensor();
        return made;
    } catch (const std::exception&) {
        return tl::make_unexpected("it needs values to run");
    }
}

bool agrees(const ResultLike& like, const Probe& probe) {
    const at::Tensor& input = probe.inputs[like.argument];
    if (!input.defined() || input.scalar_type() != probe.result.scalar_type()) {
        return false;
    }
    auto shape = input.sizes().vec();
    shape.back() = like.halved ? shape.back() / 2 : shape.back();
    return probe.result.sizes() == shape;
}

}  // namespace

tl::expected<ResultLike, std::string> result_like(
    jit::Function& function, const std::vector<std::optional<c10::IValue>>& constants) {
    std::unordered_map<const jit::Function*, std::size_t> known;
    if (inlined_size(function, known) >= most_nodes) {
        return tl::make_unexpected("its code is too large");
    }
    auto graph = jit::toGraphFunction(function).graph()->copy();
    jit::Inline(*graph);
    if (graph->outputs().size() != 1 || !is_tensor(graph->outputs()[0])) {
        return tl::make_unexpected("it does not return one tensor");
    }
    if (!harmless(graph->block())) {
        return tl::make_unexpected("it is no straight-line code");
    }
    std::vector<Probe> probes;
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
        for (const std::vector<std::int64_t>& shape :
             {std::vector<std::int64_t>{2, 6, 8}, {3, 4}, {2, 5, 3, 16}}) {
            auto one = probe(graph, constants, shape, dtype);
            if (!one) {
                return tl::make_unexpected(one.error());
            }
            probes.push_back(std::move(*one));
        }
    }
    for (std::size_t i = 0; i < graph->inputs().size(); ++i) {
        for (const bool halved : {false, true}) {
            const ResultLike like{i, halved};
            if (std::all_of(probes.begin(), probes.end(),
                            [&](const Probe& one) { return agrees(like, one); })) {
                return like;
            }
        }
    }
    return tl::make_unexpected("its result has neither the shape of an argument nor half of it");
}

jit::Value* make_like(jit::Graph& graph, const ResultLike& like, jit::Value* argument) {
    if (like.halved) {
        auto* last = graph.insertConstant(-1);
        auto* size = graph.insert(c10::aten::size, {argument, last});
        auto* half = graph.insert(c10::aten::floordiv, {size, graph.insertConstant(2)});
        argument = graph.insert(c10::aten::narrow, {argument, last, graph.insertConstant(0), half});
    }
    return graph.insert(c10::aten::empty_like, {argument});
}

}  // namespace twinkle::runtime
