#include "runtime/graph/passed_parameters.h"

#include <deque>
#include <unordered_map>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Method = std::pair<const void*, std::string>;
using Values = std::unordered_map<const jit::Value*, c10::IValue>;

// Not one object: a saved model has a tensor for each place, over one storage.
bool same(const at::Tensor& a, const at::Tensor& b) {
    return a.defined() && b.defined() && a.has_storage() && b.has_storage() &&
           a.storage().is_alias_of(b.storage()) && a.storage_offset() == b.storage_offset() &&
           a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
           a.strides() == b.strides();
}

// The name of the instance's own tensor that this one is.
std::string name_in(const jit::Module& instance, const at::Tensor& tensor) {
    for (std::size_t i = 0; i < instance.type()->numAttributes(); ++i) {
        const c10::IValue& own = instance._ivalue()->getSlot(i);
        if (own.isTensor() && same(own.toTensor(), tensor)) {
            return instance.type()->getAttributeName(i);
        }
    }
    return "";
}

struct Visit {
    c10::intrusive_ptr<c10::ivalue::Object> object;
    std::string method;
};

// Walks the calls until what is known of every method's inputs no longer changes. It only ever
// becomes less (a tensor, then none), so that this ends.
class ParameterWalk {
public:
    explicit ParameterWalk(std::map<Method, std::vector<at::Tensor>>& passed) : passed_(passed) {}

    void from(const jit::Module& root) {
        for (jit::Function* method : root.type()->methods()) {
            passed_[{root._ivalue().get(), method->name()}].resize(
                method->getSchema().arguments().size());
            pending_.push_back({root._ivalue(), method->name()});
        }
        while (!pending_.empty()) {
            const Visit visit = pending_.front();
            pending_.pop_front();
            walk(visit);
        }
    }

private:
    void walk(const Visit& visit) {
        jit::Function* function = visit.object->type()->findMethod(visit.method);
        auto* compiled = function == nullptr ? nullptr : jit::tryToGraphFunction(*function);
        if (compiled == nullptr) {
            return;
        }
        const auto graph = compiled->graph();
        const auto& inputs = passed_.at({visit.object.get(), visit.method});
        Values known;
        for (std::size_t i = 0; i < graph->inputs().size(); ++i) {
            if (i == 0) {
                known[graph->inputs()[0]] = visit.object;
            } else if (i < inputs.size() && inputs[i].defined()) {
                known[graph->inputs()[i]] = inputs[i];
            }
        }
        block(graph->block(), known);
    }

    void block(const jit::Block* block, Values& known) {
        for (const jit::Node* node : block->nodes()) {
            if (node->kind() == c10::prim::GetAttr) {
                get_attribute(node, known);
            } else if (node->kind() == c10::prim::CallMethod) {
                call(node, known);
            }
            for (const jit::Block* inner : node->blocks()) {
                this->block(inner, known);
            }
        }
    }

    static void get_attribute(const jit::Node* node, Values& known) {
        const auto object = known.find(node->input());
        if (object == known.end() || !object->second.isObject()) {
            return;
        }
        const auto& name = node->s(c10::attr::name);
        const auto& type = object->second.toObjectRef().type();
        if (!type->hasAttribute(name)) {
            return;
        }
        const c10::IValue value = object->second.toObjectRef().getAttr(name);
        if (value.isObject() || (value.isTensor() && value.toTensor().defined())) {
            known[node->output()] = value;
        }
    }

    void call(const jit::Node* node, const Values& known) {
        const auto object = known.find(node->input(0));
        if (object == known.end() || !object->second.isObject()) {
            return;
        }
        const auto callee = object->second.toObject();
        std::vector<at::Tensor> arguments(node->inputs().size());
        for (std::size_t i = 1; i < arguments.size(); ++i) {
            const auto value = known.find(node->input(i));
            if (value != known.end() && value->second.isTensor()) {
                arguments[i] = value->second.toTensor();
            }
        }
        const std::string& name = node->s(c10::attr::name);
        const auto [entry, first] = passed_.emplace(Method{callee.get(), name}, arguments);
        bool changed = first;
        for (std::size_t i = 1; i < entry->second.size() && !first; ++i) {
            at::Tensor& before = entry->second[i];
            if (before.defined() && (i >= arguments.size() || !same(before, arguments[i]))) {
                before = at::Tensor();
                changed = true;
            }
        }
        if (changed) {
            pending_.push_back({callee, name});
        }
    }

    std::map<Method, std::vector<at::Tensor>>& passed_;
    std::deque<Visit> pending_;
};

}  // namespace

PassedParameters::PassedParameters(const jit::Module& root) {
    ParameterWalk(passed_).from(root);
}

PassedInputs PassedParameters::of(const jit::Module& instance, const std::string& method) const {
    PassedInputs inputs;
    const auto found = passed_.find({instance._ivalue().get(), method});
    for (std::size_t i = 1; found != passed_.end() && i < found->second.size(); ++i) {
        if (found->second[i].defined()) {
            inputs.emplace(i, name_in(instance, found->second[i]));
        }
    }
    return inputs;
}

}  // namespace twinkle::runtime
