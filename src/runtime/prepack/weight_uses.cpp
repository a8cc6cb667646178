#include "runtime/prepack/weight_uses.h"

#include "runtime/graph/class_name.h"
#include "runtime/graph/graph_walk.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

WeightUses::WeightUses(const jit::Module& model, const PrepackOperators& operators)
    : operators_(operators) {
    for (jit::Function* method : model.type()->methods()) {
        reach(method);
    }
    while (!pending_.empty()) {
        const auto graph = pending_.back()->graph();
        pending_.pop_back();
        for_each_node(graph->block(), [&](const jit::Node* node) {
            follow(node);
            read(node);
        });
    }
}

void WeightUses::reach(jit::Function* function) {
    auto* const compiled = function == nullptr ? nullptr : jit::tryToGraphFunction(*function);
    if (compiled == nullptr) {
        all_followed_ = all_followed_ && function != nullptr;
    } else if (reached_.insert(compiled).second) {
        pending_.push_back(compiled);
    }
}

void WeightUses::follow(const jit::Node* node) {
    if (node->hasAttribute(c10::attr::Subgraph)) {  // a fork, whose calls are not inlined
        all_followed_ = false;
    } else if (node->kind() == c10::prim::CallFunction) {
        const auto callee = node->input(0)->type()->cast<c10::FunctionType>();
        reach(callee == nullptr ? nullptr : callee->function());
    } else if (node->kind() == c10::prim::CallMethod) {
        const auto type = node->input(0)->type()->cast<c10::ClassType>();
        const std::string& name = node->s(c10::attr::name);
        jit::Function* const method = type == nullptr ? nullptr : type->findMethod(name);
        reach(method == nullptr && type != nullptr ? type->findHook(name) : method);
    }
}

bool WeightUses::may_prepack(const c10::ClassType& type, const std::string& attribute) const {
    const auto found = attributes_.find({&type, attribute});
    return all_followed_ && found != attributes_.end() && found->second;
}

bool WeightUses::may_prepack_any() const {
    return all_followed_ && std::any_of(attributes_.begin(), attributes_.end(),
                                        [](const auto& one) { return one.second; });
}

void WeightUses::read(const jit::Node* node) {
    const bool is_set = node->kind() == c10::prim::SetAttr;
    if (!is_set && node->kind() != c10::prim::GetAttr) {
        return;
    }
    const auto type = node->input(0)->type()->cast<c10::ClassType>();
    if (type == nullptr ||
        (!is_set && node->output()->type()->kind() != c10::TypeKind::TensorType)) {
        return;
    }
    bool& may =
        attributes_.emplace(Attribute{type.get(), node->s(c10::attr::name)}, true).first->second;
    may = may && !is_set && all_uses_take(node->output());
}

bool WeightUses::all_uses_take(const jit::Value* value) {
    return std::all_of(value->uses().begin(), value->uses().end(), [&](const jit::Use& use) {
        if (use.user->kind() != c10::prim::CallFunction || use.offset == 0) {
            return false;
        }
        const auto callee = use.user->input(0)->type()->cast<c10::FunctionType>();
        return callee != nullptr && takes(*callee->function(), use.offset - 1);
    });
}

namespace {

class Depth {
public:
    explicit Depth(int& depth) : depth_(depth) { ++depth_; }
    ~Depth() { --depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

private:
    int& depth_;
};

}  // namespace

bool WeightUses::takes(jit::Function& function, std::size_t input) {
    constexpr int most_calls = 100;  // of one another: a stack has an end
    const Depth depth(depth_);
    if (depth_ > most_calls) {
        return false;
    }
    const auto [entry, first] = inputs_.emplace(Input{&function, input}, false);
    auto* const compiled = first ? jit::tryToGraphFunction(function) : nullptr;
    if (compiled != nullptr && input < compiled->graph()->inputs().size()) {
        const jit::Value* const value = compiled->graph()->inputs()[input];
        const bool may = is_weight_of_kernel(function, value) || all_uses_take(value);
        inputs_[{&function, input}] = may;
        return may;
    }
    return entry->second;
}

bool WeightUses::is_weight_of_kernel(const jit::Function& function, const jit::Value* value) {
    return function.qualname().qualifiedName().starts_with(kernel_code) &&
           std::any_of(value->uses().begin(), value->uses().end(), [&](const jit::Use& use) {
               const auto found = operators_.find(use.user->kind());
               return found != operators_.end() && use.offset == found->second.weight;
           });
}

}  // namespace twinkle::runtime
