#include "runtime/graph/inlined_size.h"

#include "runtime/graph/graph_walk.h"

#include <algorithm>
#include <unordered_map>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

class Counting {
public:
    explicit Counting(std::size_t most) : most_(most) {}

    std::size_t of(jit::Function* function) {
        auto* const compiled = function == nullptr ? nullptr : jit::tryToGraphFunction(*function);
        if (compiled == nullptr) {
            return 0;
        }
        const auto [entry, first] = known_.emplace(function, most_);
        if (!first || depth_ == most_calls) {
            return entry->second;
        }
        ++depth_;
        std::size_t nodes = 0;
        for_each_node_and_forked(compiled->graph()->block(), [&](const jit::Node* node) {
            nodes = std::min(most_, nodes + 1 + of(callee_of(node)));
        });
        --depth_;
        return known_[function] = nodes;
    }

private:
    static jit::Function* callee_of(const jit::Node* node) {
        if (node->kind() == c10::prim::CallFunction) {
            const auto type = node->input(0)->type()->cast<c10::FunctionType>();
            return type == nullptr ? nullptr : type->function();
        }
        if (node->kind() == c10::prim::CallMethod) {
            const auto type = node->input(0)->type()->cast<c10::ClassType>();
            return type == nullptr ? nullptr : type->findMethod(node->s(c10::attr::name));
        }
        return nullptr;
    }

    static constexpr int most_calls = 1000;  // of one another: a stack has an end

    std::size_t most_;
    int depth_ = 0;
    std::unordered_map<const jit::Function*, std::size_t> known_;
};

}  // namespace

std::size_t inlined_nodes(const jit::Method& method, std::size_t most) {
    return Counting(most).of(&method.function());
}

}  // namespace twinkle::runtime
