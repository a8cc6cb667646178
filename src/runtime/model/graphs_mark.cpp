#include "runtime/model/graphs_mark.h"

#include "runtime/graph/graph_walk.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/lower_tuples.h>

#include <algorithm>
#include <memory>
#include <string>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

const auto replay_symbol = c10::Symbol::fromQualString(replay_operator);

std::vector<jit::Node*> replay_nodes(const jit::Graph& graph) {
    std::vector<jit::Node*> found;
    for_each_node(graph.block(), [&](const jit::Node* node) {
        if (node->kind() == replay_symbol) {
            found.push_back(
                const_cast<jit::Node*>(node));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
        }
    });
    return found;
}

void move_nodes(jit::Block* from, jit::Node* before) {
    const std::vector<jit::Node*> nodes(from->nodes().begin(), from->nodes().end());
    for (jit::Node* node : nodes) {
        node->moveBefore(before);
    }
}

// The branch that computes takes the place of the choice.
void take_body(jit::Node* choice) {
    jit::Block* body = choice->blocks().at(1);
    move_nodes(body, choice);
    for (std::size_t i = 0; i < choice->outputs().size(); ++i) {
        choice->output(i)->replaceAllUsesWith(body->outputs().at(i));
    }
    choice->destroy();
}

void remove_replay(jit::Graph& graph, jit::Node* call) {
    const auto uses = call->output(0)->uses();
    for (const jit::Use& use : uses) {
        if (use.user->kind() == jit::prim::If) {
            take_body(use.user);
        }
    }
    // There is no replay, whatever else somebody has made of the answer.
    const jit::WithInsertPoint here(call);
    call->output(0)->replaceAllUsesWith(graph.insertConstant(false));
    call->output(1)->replaceAllUsesWith(graph.insertConstant(c10::IValue()));
    call->destroy();
}

bool remove_replays(const std::shared_ptr<jit::Graph>& graph) {
    if (replay_nodes(*graph).empty()) {
        return false;
    }
    jit::LowerSimpleTuples(graph);  // between the call and the choice, if it was just parsed
    for (jit::Node* call : replay_nodes(*graph)) {
        remove_replay(*graph, call);
    }
    jit::EliminateDeadCode(graph);  // the tuple of inputs
    return true;
}

}  // namespace

void mark_for_graphs(jit::Module& root, const c10::IValue& graphs) {
    if (!root.find_method("forward")) {
        throw Error(ErrorCode::malformed, {.what = "the model has no forward()",
                                           .where = root._ivalue()->name(),
                                           .why = "graphs replay runs of that method",
                                           .hint = "leave out --graphs"});
    }
    remove_graphs_mark(root);
    const auto graph = jit::toGraphFunction(root.get_method("forward").function()).graph();
    jit::Value* result = graph->outputs().at(0);
    const std::vector<jit::Node*> body(graph->nodes().begin(), graph->nodes().end());
    const jit::WithInsertPoint at_end(graph->return_node());
    jit::Value* text = graph->insertConstant(std::string(graphs_mark_text));
    jit::Value* object = graph->insertConstant(graphs);
    const auto inputs = graph->insertNode(graph->createTuple(graph->inputs().slice(1)))->output();
    jit::Node* call = graph->insertNode(
        graph->create(replay_symbol, {text, object, graph->inputs().at(0), inputs}, 2));
    call->output(0)->setType(c10::BoolType::get());
    call->output(1)->setType(c10::AnyType::get());
    jit::Node* choice = graph->insertNode(graph->create(jit::prim::If, {call->output(0)}, 1));
    choice->output()->setType(result->type());
    jit::Block* replayed = choice->addBlock();
    jit::Block* computed = choice->addBlock();
    jit::Node* cast = graph->create(jit::prim::unchecked_cast, {call->output(1)}, 1);
    cast->output()->setType(result->type());
    replayed->appendNode(cast);
    replayed->registerOutput(cast->output());
    graph->block()->replaceOutput(0, choice->output());
    for (jit::Node* node : body) {
        node->moveBefore(computed->return_node());
    }
    computed->registerOutput(result);
}

bool remove_graphs_mark(const jit::Module& root) {
    bool any = false;
    for (jit::Function* method : root.type()->methods()) {
        if (auto* function = jit::tryToGraphFunction(*method)) {
            any = remove_replays(function->graph()) || any;
        }
    }
    return any;
}

std::shared_ptr<jit::Graph> unmarked_forward(const jit::Module& root) {
    auto graph = jit::toGraphFunction(root.get_method("forward").function()).graph()->copy();
    remove_replays(graph);
    return graph;
}

bool is_marked_for_graphs(const std::vector<CodeFile>& code) {
    const std::string literal = std::string("\"") + graphs_mark_text + "\"";
    return std::any_of(code.begin(), code.end(), [&](const CodeFile& file) {
        return file.text.find(literal) != std::string::npos;
    });
}

}  // namespace twinkle::runtime
