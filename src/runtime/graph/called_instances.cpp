#include "runtime/graph/called_instances.h"

#include "runtime/graph/graph_walk.h"

#include <unordered_map>
#include <vector>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Object = c10::intrusive_ptr<c10::ivalue::Object>;

bool is_module(const c10::TypePtr& type) {
    return type->kind() == c10::TypeKind::InterfaceType ||
           (type->cast<c10::ClassType>() && type->expectRef<c10::ClassType>().is_module());
}

class Walk {
public:
    Walk(std::unordered_set<const void*>& called,
         std::set<std::pair<const void*, std::string>>& methods)
        : called_(called), visited_(methods) {}

    // False: a call could not be followed.
    bool from(const jit::Module& root) {
        for (const jit::Function* method : root.type()->methods()) {
            visit(root._ivalue(), method->name());
        }
        while (!pending_.empty()) {
            const auto [object, method] = pending_.back();
            pending_.pop_back();
            walk(object, method);
        }
        return followed_;
    }

private:
    void visit(const Object& object, const std::string& method) {
        called_.insert(object.get());
        if (visited_.emplace(object.get(), method).second) {
            pending_.emplace_back(object, method);
        }
    }

    void walk(const Object& object, const std::string& name) {
        jit::Function* method = object->type()->findMethod(name);
        auto* compiled = method == nullptr ? nullptr : jit::tryToGraphFunction(*method);
        if (compiled == nullptr) {
            return;
        }
        const auto graph = compiled->graph();
        std::unordered_map<const jit::Value*, Object> known{{graph->inputs().at(0), object}};
        for_each_node(graph->block(), [&](const jit::Node* node) {
            if (node->kind() == c10::prim::GetAttr) {
                get_attribute(node, known);
            } else {
                use(node, known);
            }
        });
    }

    static void get_attribute(const jit::Node* node,
                              std::unordered_map<const jit::Value*, Object>& known) {
        const auto object = known.find(node->input());
        const auto& name = node->s(c10::attr::name);
        if (object != known.end() && object->second->type()->hasAttribute(name)) {
            const c10::IValue value = object->second->getAttr(name);
            if (value.isObject()) {
                known.emplace(node->output(), value.toObject());
            }
        }
    }

    // A module that is called, or that goes where calls of it cannot be seen.
    void use(const jit::Node* node, const std::unordered_map<const jit::Value*, Object>& known) {
        for (std::size_t i = 0; i < node->inputs().size(); ++i) {
            const auto object = known.find(node->input(i));
            const bool callee = i == 0 && node->kind() == c10::prim::CallMethod;
            if (object != known.end() && callee) {
                visit(object->second, node->s(c10::attr::name));
            } else if (object != known.end()) {
                visit_all(object->second);
            } else if (callee && is_module(node->input(i)->type())) {
                followed_ = false;
            }
        }
    }

    void visit_all(const Object& object) {
        for (const jit::Function* method : object->type()->methods()) {
            visit(object, method->name());
        }
        for (const c10::IValue& slot : object->slots()) {
            if (slot.isObject() && !called_.contains(slot.toObject().get())) {
                visit_all(slot.toObject());
            }
        }
    }

    std::unordered_set<const void*>& called_;
    std::set<std::pair<const void*, std::string>>& visited_;
    std::vector<std::pair<Object, std::string>> pending_;
    bool followed_ = true;
};

}  // namespace

CalledInstances::CalledInstances(const jit::Module& root) {
    all_ = !Walk(called_, methods_).from(root);
}

bool CalledInstances::contains(const jit::Module& instance) const {
    return all_ || called_.contains(instance._ivalue().get());
}

bool CalledInstances::contains(const jit::Module& instance, const std::string& method) const {
    const bool is_hook = instance.type()->findMethod(method) == nullptr;
    return is_hook ? contains(instance)
                   : all_ || methods_.contains({instance._ivalue().get(), method});
}

}  // namespace twinkle::runtime
