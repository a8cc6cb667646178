#include "runtime/graph/forward_methods.h"

#include "runtime/graph/graph_walk.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <cctype>
#include <map>

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

bool is_numbered_forward(const std::string& name) {
    return name.starts_with("forward") && name != "forward" &&
           std::all_of(name.begin() + 7, name.end(),
                       [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

const jit::Value* view_root(const jit::Value* value) {
    static const std::set<std::string> views = {
        "aten::view",   "aten::slice",     "aten::select",  "aten::unsqueeze", "aten::squeeze",
        "aten::narrow", "aten::transpose", "aten::permute", "aten::expand",    "aten::t",
        "aten::alias",  "aten::detach",    "aten::flatten", "aten::unflatten"};
    while (views.contains(value->node()->kind().toQualString())) {
        value = value->node()->input(0);
    }
    return value;
}

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
            const jit::Node* from = view_root(node->input(i))->node();
            if (from->kind() == c10::prim::GetAttr) {
                names.insert(from->s(c10::attr::name));
            } else if (from->kind() == c10::prim::Param) {
                names.insert("input");
            }
        }
    });
    return names;
}

namespace {

// Deeper calls are taken to write into all that they are given.
constexpr int deepest_call = 64;

using Known = std::vector<std::optional<c10::IValue>>;

// What a function writes into of its inputs, by the function and the flags that are known: one that
// is called at many places is looked at once.
using Written = std::map<std::pair<const jit::Function*, std::string>, std::set<std::size_t>>;

std::string flags_of(const Known& known) {
    std::string flags;
    for (const auto& one : known) {
        flags += !one || !one->isBool() ? '-' : one->toBool() ? '1' : '0';
    }
    return flags;
}

class WrittenRoots {
public:
    WrittenRoots(const Known& known, Written& written, int depth = 0)
        : known_(known), written_(written), depth_(depth) {}

    void block(const jit::Block* block) {
        for (const jit::Node* node : block->nodes()) {
            if (node->kind() == c10::prim::CallFunction) {
                call(node);
            } else {
                operation(node);
            }
            const auto taken = branch(node);
            for (std::size_t i = 0; i < node->blocks().size(); ++i) {
                if (!taken || *taken == i) {
                    this->block(node->blocks()[i]);
                }
            }
        }
    }

    std::set<const jit::Value*> roots;

private:
    // The branch that an `if` on a known flag takes, such as `inplace` of torch.nn.functional.
    std::optional<std::size_t> branch(const jit::Node* node) const {
        if (node->kind() != c10::prim::If) {
            return std::nullopt;
        }
        const jit::Value* flag = node->input();
        const bool input = flag->node() == node->owningGraph()->param_node();
        if (!input || flag->offset() >= known_.size() || !known_[flag->offset()] ||
            !known_[flag->offset()]->isBool()) {
            return std::nullopt;
        }
        return known_[flag->offset()]->toBool() ? 0 : 1;
    }

    void call(const jit::Node* node) {
        const auto type = node->input(0)->type()->cast<c10::FunctionType>();
        auto* callee = type ? jit::tryToGraphFunction(*type->function()) : nullptr;
        if (callee == nullptr) {
            return;
        }
        Known arguments;
        for (const jit::Value* argument : node->inputs().slice(1)) {
            arguments.push_back(jit::toIValue(argument));
        }
        for (const std::size_t input : inputs_written_by(*callee, arguments)) {
            roots.insert(view_root(node->input(input + 1)));
        }
    }

    std::set<std::size_t> inputs_written_by(jit::GraphFunction& function, const Known& arguments) {
        const std::pair key(static_cast<const jit::Function*>(&function), flags_of(arguments));
        if (const auto found = written_.find(key); found != written_.end()) {
            return found->second;
        }
        std::set<std::size_t> inputs;
        const auto graph = function.graph();
        if (depth_ >= deepest_call) {
            for (std::size_t i = 0; i < arguments.size(); ++i) {
                inputs.insert(i);
            }
            return inputs;
        }
        WrittenRoots inner(arguments, written_, depth_ + 1);
        inner.block(graph->block());
        for (const jit::Value* root : inner.roots) {
            if (root->node() == graph->param_node() && root->offset() < arguments.size()) {
                inputs.insert(root->offset());
            }
        }
        return written_.emplace(key, std::move(inputs)).first->second;
    }

    void operation(const jit::Node* node) {
        const auto* schema = node->maybeSchema();
        if (schema == nullptr || !schema->is_mutable()) {
            return;
        }
        for (std::size_t i = 0; i < schema->arguments().size() && i < node->inputs().size(); ++i) {
            const auto* alias = schema->arguments()[i].alias_info();
            if (alias != nullptr && alias->isWrite()) {
                roots.insert(view_root(node->input(i)));
            }
        }
    }

    const Known& known_;
    Written& written_;
    int depth_;
};

}  // namespace

std::set<const jit::Value*> written_roots(const jit::Block* block) {
    const Known nothing;
    Written written;
    WrittenRoots found(nothing, written);
    found.block(block);
    return std::move(found.roots);
}

std::set<std::size_t> written_inputs(jit::Function& function, const Known& known) {
    std::set<std::size_t> inputs;
    Written written;
    WrittenRoots found(known, written);
    found.block(body(function));
    for (const jit::Value* root : found.roots) {
        if (root->node() == root->owningGraph()->param_node()) {
            inputs.insert(root->offset());
        }
    }
    return inputs;
}

}  // namespace twinkle::runtime
