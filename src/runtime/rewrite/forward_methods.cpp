#include "runtime/rewrite/forward_methods.h"

#include "runtime/model/graph_walk.h"

#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <cctype>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

const jit::Block* body(jit::Function& method) {
    return jit::toGraphFunction(method).graph()->block();
}

// The source that a scripted method was made of is kept with its nodes; of a trace that is a stack.
// Code that was saved without either says nothing.
bool has_source(jit::Function& method) {
    const std::string definition = "def " + method.name() + "(";
    bool found = false;
    for_each_node(body(method), [&](const jit::Node* node) {
        const auto& range = node->sourceRange();
        const auto generated = found ? std::nullopt : range.findSourceRangeThatGenerated();
        const auto source = generated ? generated->source() : range.source();
        if (found || !source ||
            (!generated && source->filename().value_or("").starts_with("code/"))) {
            return;
        }
        found = source->text_str().str().find(definition) != std::string::npos;
    });
    return found;
}

std::vector<c10::Symbol> operators_of(jit::Function& method) {
    std::vector<c10::Symbol> kinds;
    for_each_node(body(method), [&](const jit::Node* node) {
        if (node->kind() != c10::prim::Constant) {
            kinds.push_back(node->kind());
        }
    });
    return kinds;
}

// What a view is a view of.
const jit::Value* viewed(const jit::Value* value) {
    static const std::set<std::string> views = {
        "aten::view",   "aten::slice",     "aten::select",  "aten::unsqueeze", "aten::squeeze",
        "aten::narrow", "aten::transpose", "aten::permute", "aten::expand",    "aten::t",
        "aten::alias",  "aten::detach",    "aten::flatten", "aten::unflatten"};
    while (views.contains(value->node()->kind().toQualString())) {
        value = value->node()->input(0);
    }
    return value;
}

bool is_numbered_forward(const std::string& name) {
    return name.starts_with("forward") && name != "forward" &&
           std::all_of(name.begin() + 7, name.end(),
                       [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

std::vector<jit::Function*> forward_methods(const c10::ClassTypePtr& type) {
    std::vector<jit::Function*> found;
    jit::Function* forward = type->findMethod("forward");
    if (forward != nullptr) {
        found.push_back(forward);
    }
    for (jit::Function* method : type->methods()) {
        if (is_numbered_forward(method->name()) && !has_source(*method) &&
            (forward == nullptr || operators_of(*method) == operators_of(*forward))) {
            found.push_back(method);
        }
    }
    return found;
}

std::set<std::string> written_values(jit::Function& method) {
    std::set<std::string> names;
    for_each_node(body(method), [&](const jit::Node* node) {
        if (node->kind() == c10::prim::SetAttr) {
            names.insert(node->s(c10::attr::name));
            return;
        }
        const auto* schema = node->maybeSchema();
        if (schema == nullptr || !schema->is_mutable()) {
            return;
        }
        for (std::size_t i = 0; i < schema->arguments().size() && i < node->inputs().size(); ++i) {
            const auto* alias = schema->arguments()[i].alias_info();
            if (alias == nullptr || !alias->isWrite()) {
                continue;
            }
            const jit::Node* from = viewed(node->input(i))->node();
            if (from->kind() == c10::prim::GetAttr) {
                names.insert(from->s(c10::attr::name));
            } else if (from->kind() == c10::prim::Param) {
                names.insert("input");
            }
        }
    });
    return names;
}

}  // namespace twinkle::runtime
