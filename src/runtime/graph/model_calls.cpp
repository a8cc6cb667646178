#include "runtime/graph/model_calls.h"

#include "runtime/graph/graph_walk.h"

#include <deque>
#include <unordered_map>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Object = c10::intrusive_ptr<c10::ivalue::Object>;
using Values = std::unordered_map<const jit::Value*, c10::IValue>;

bool is_module(const c10::TypePtr& type) {
    return type->kind() == c10::TypeKind::InterfaceType ||
           (type->cast<c10::ClassType>() && type->expectRef<c10::ClassType>().is_module());
}

// Walks the calls until what is known of every method's inputs no longer changes. It only ever
// becomes less (a tensor, then none), so that this ends.
class CallWalk {
public:
    explicit CallWalk(ModelCalls& calls) : calls_(calls) {}

    void from(const jit::Module& root) {
        call_all(root._ivalue());
        while (!pending_.empty()) {
            const auto [object, method] = pending_.front();
            pending_.pop_front();
            walk(object, method);
        }
    }

private:
    void call(const Object& object, const std::string& method,
              const std::vector<at::Tensor>& arguments) {
        calls_.instances.insert(object.get());
        const auto [entry, first] =
            calls_.methods.emplace(ModelCalls::Method{object.get(), method}, arguments);
        bool changed = first;
        for (std::size_t i = 1; i < entry->second.size() && !first; ++i) {
            at::Tensor& before = entry->second[i];
            if (before.defined() &&
                (i >= arguments.size() || !is_same_parameter(before, arguments[i]))) {
                before = at::Tensor();
                changed = true;
            }
        }
        if (changed) {
            pending_.emplace_back(object, method);
        }
    }

    void call_all(const Object& object) {
        for (const jit::Function* method : object->type()->methods()) {
            call(object, method->name(), {});
        }
    }

    // A module that goes where calls of it cannot be seen.
    void let_go(const Object& object) {
        if (!gone_.insert(object.get()).second) {
            return;
        }
        calls_.instances.insert(object.get());
        call_all(object);
        for (const c10::IValue& slot : object->slots()) {
            if (slot.isObject()) {
                let_go(slot.toObject());
            }
        }
    }

    void walk(const Object& object, const std::string& name) {
        jit::Function* method = object->type()->findMethod(name);
        auto* compiled = method == nullptr ? nullptr : jit::tryToGraphFunction(*method);
        if (compiled == nullptr) {
            return;
        }
        const auto graph = compiled->graph();
        const auto& inputs = calls_.methods.at({object.get(), name});
        Values known{{graph->inputs().at(0), object}};
        for (std::size_t i = 1; i < std::min(inputs.size(), graph->inputs().size()); ++i) {
            if (inputs[i].defined()) {
                known[graph->inputs()[i]] = inputs[i];
            }
        }
        for_each_node(graph->block(), [&](const jit::Node* node) {
            if (node->kind() == c10::prim::GetAttr) {
                get_attribute(node, known);
            } else {
                use(node, known);
            }
        });
    }

    static void get_attribute(const jit::Node* node, Values& known) {
        const auto object = known.find(node->input());
        const auto& name = node->s(c10::attr::name);
        if (object == known.end() || !object->second.isObject() ||
            !object->second.toObjectRef().type()->hasAttribute(name)) {
            return;
        }
        const c10::IValue value = object->second.toObjectRef().getAttr(name);
        if (value.isObject() || (value.isTensor() && value.toTensor().defined())) {
            known[node->output()] = value;
        }
    }

    void use(const jit::Node* node, const Values& known) {
        const bool is_call = node->kind() == c10::prim::CallMethod;
        std::vector<at::Tensor> arguments(is_call ? node->inputs().size() : 0);
        for (std::size_t i = is_call ? 1 : 0; i < node->inputs().size(); ++i) {
            const auto value = known.find(node->input(i));
            if (value != known.end() && value->second.isObject()) {
                let_go(value->second.toObject());
            } else if (value != known.end() && is_call) {
                arguments[i] = value->second.toTensor();
            }
        }
        const auto callee = is_call ? known.find(node->input(0)) : known.end();
        if (callee != known.end() && callee->second.isObject()) {
            call(callee->second.toObject(), node->s(c10::attr::name), arguments);
        } else if (is_call && is_module(node->input(0)->type())) {
            calls_.all_followed = false;
        }
    }

    ModelCalls& calls_;
    std::unordered_set<const void*> gone_;
    std::deque<std::pair<Object, std::string>> pending_;
};

}  // namespace

ModelCalls::ModelCalls(const jit::Module& root) {
    CallWalk(*this).from(root);
}

bool is_same_parameter(const at::Tensor& a, const at::Tensor& b) {
    return a.defined() && b.defined() && a.has_storage() && b.has_storage() &&
           a.storage().is_alias_of(b.storage()) && a.storage_offset() == b.storage_offset() &&
           a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
           a.strides() == b.strides();
}

}  // namespace twinkle::runtime
