#include "runtime/dispatch/size_choice.h"

#include <span>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Part = std::span<const Alternative>;

jit::Value* insert_part(jit::Graph& graph, jit::Value* elements, Part part) {
    if (part.size() == 1) {
        return part.front().insert(graph);
    }
    const std::size_t half = part.size() / 2;
    jit::Value* bound = graph.insertConstant(part[half - 1].up_to);
    jit::Value* few = graph.insert(c10::aten::le, {elements, bound});
    jit::Node* choice = graph.insertNode(graph.create(c10::prim::If, {few}, 0));
    for (const Part side : {part.first(half), part.subspan(half)}) {
        jit::Block* block = choice->addBlock();
        const jit::WithInsertPoint at(block);
        block->registerOutput(insert_part(graph, elements, side));
    }
    const auto type = choice->blocks()[0]->outputs()[0]->type();
    return choice->addOutput()->setType(c10::unshapedType(type));
}

}  // namespace

jit::Value* insert_choice(jit::Graph& graph, jit::Value* by,
                          const std::vector<Alternative>& alternatives) {
    jit::Value* elements =
        alternatives.size() > 1 ? graph.insert(c10::Symbol::aten("numel"), {by}) : nullptr;
    return insert_part(graph, elements, alternatives);
}

bool has_elements(const jit::Value* value) {
    return value->type()->isSubtypeOf(*c10::TensorType::get());
}

}  // namespace twinkle::runtime
