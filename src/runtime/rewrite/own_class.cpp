#include "runtime/rewrite/own_class.h"

#include "base/text.h"
#include "runtime/rewrite/sites.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/ir/ir.h>

namespace twinkle::runtime {

namespace {

using torch::jit::Block;
using torch::jit::Node;

// Attribute types follow from their object's class: after a class has changed, so have they.
void retype_attributes(Block* block) {
    for (Node* node : block->nodes()) {
        if (node->kind() == c10::prim::GetAttr) {
            if (const auto type = node->input()->type()->cast<c10::ClassType>()) {
                node->output()->setType(type->getAttribute(node->s(c10::attr::name)));
            }
        }
        for (Block* inner : node->blocks()) {
            retype_attributes(inner);
        }
    }
}

bool is_shared(const std::vector<Instance>& instances, const torch::jit::Module& module) {
    std::size_t count = 0;
    for (const Instance& instance : instances) {
        count += instance.module.type() == module.type() ? 1 : 0;
    }
    return count > 1;
}

void copy_methods(const c10::ClassTypePtr& from, const c10::ClassTypePtr& to) {
    const auto cu = from->compilation_unit();
    for (torch::jit::Function* method : from->methods()) {
        auto& original = torch::jit::toGraphFunction(*method);
        auto graph = original.graph()->copy();
        graph->remapTypes([&](const c10::TypePtr& type) -> c10::TypePtr {
            return type == from ? c10::TypePtr(to) : type;
        });
        auto* copy =
            cu->create_function(c10::QualifiedName(*to->name(), method->name()), std::move(graph));
        copy->setSchema(method->getSchema().cloneWithRemappedTypes(
            [&](const c10::TypePtr& type) -> c10::TypePtr {
                return type == from ? c10::TypePtr(to) : type;
            }));
        to->addMethod(copy);
    }
}

c10::ClassTypePtr clone_class(const c10::ClassTypePtr& from) {
    const auto cu = from->compilation_unit();
    const auto to = c10::ClassType::create(cu->mangle(*from->name()), cu, from->is_module());
    for (std::size_t i = 0; i < from->numAttributes(); ++i) {
        to->addAttribute(from->getAttributeName(i), from->getAttribute(i), from->is_parameter(i),
                         from->is_buffer(i));
    }
    for (std::size_t i = 0; i < from->numConstants(); ++i) {
        to->addConstant(from->getConstantName(i), from->getConstant(i));
    }
    cu->register_type(to);
    copy_methods(from, to);
    for (const auto& property : from->properties()) {
        to->addProperty(property.name, to->findMethod(property.getter->name()),
                        property.setter ? to->findMethod(property.setter->name()) : nullptr);
    }
    return to;
}

// The same slots under the new class, hung into the parent in place of the old object.
torch::jit::Module replace_child(torch::jit::Module& parent, const std::string& name,
                                 const torch::jit::Module& child) {
    const auto type = clone_class(child.type());
    auto object = c10::ivalue::Object::create(c10::StrongTypePtr(type->compilation_unit(), type),
                                              child._ivalue()->slots().size());
    for (std::size_t i = 0; i < child._ivalue()->slots().size(); ++i) {
        object->setSlot(i, child._ivalue()->getSlot(i));
    }
    const auto parent_type = parent.type();
    if (parent_type->getAttribute(name)->cast<c10::ClassType>()) {
        parent_type->unsafeChangeAttributeType(name, type);
    }
    parent._ivalue()->setAttr(name, object);
    return torch::jit::Module(object);
}

void retype_methods(const std::vector<torch::jit::Module>& modules) {
    for (const torch::jit::Module& module : modules) {
        for (torch::jit::Function* method : module.type()->methods()) {
            retype_attributes(torch::jit::toGraphFunction(*method).graph()->block());
        }
    }
}

}  // namespace

torch::jit::Module give_own_class(torch::jit::Module& root, const std::string& path) {
    torch::jit::Module current = root;
    // A graph reaches into the children of its own children (a loop over a list of layers does), so
    // all graphs on the way are retyped.
    std::vector<torch::jit::Module> way{root};
    for (const std::string& name : base::split(path, '.')) {
        torch::jit::Module child = current.attr(name).toModule();
        if (is_shared(instances_of(root), child)) {
            if (!child.type()->getForwardHooks().empty() ||
                !child.type()->getForwardPreHooks().empty()) {
                throw Error(ErrorCode::refused,
                            {.what = "a class with hooks cannot be cloned for one instance",
                             .where = path,
                             .why = "the hooks of " + child.type()->name()->qualifiedName() +
                                    " would be lost",
                             .hint = "treat all instances of this class alike"});
            }
            child = replace_child(current, name, child);
            retype_methods(way);
        }
        current = child;
        way.push_back(current);
    }
    return current;
}

}  // namespace twinkle::runtime
