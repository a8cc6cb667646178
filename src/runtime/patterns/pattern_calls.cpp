#include "runtime/patterns/pattern_calls.h"
#include "runtime/format.h"

#include "runtime/rewrite/region_call.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

class OriginalBuilder {
public:
    OriginalBuilder(const FlatGraph& graph, const PatternSite& site) : graph_(graph), site_(site) {}

    // Null: `problem` says why.
    std::shared_ptr<jit::Graph> build() {
        const auto& parameters = site_.match.parameters;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const FormulaParameter& parameter = site_.formula->parameters[i];
            jit::Value* input = made_->addInput(parameter.name)->setType(parameter.type);
            if (!parameters[i].constant && parameters[i].use.value != nothing) {
                values_.emplace(parameters[i].use.value, input);
            }
        }
        for (const std::int32_t index : site_.match.nodes) {
            const FlatNode& node = graph_.node(index);
            if (copy(node.node, node.frame, 0) == nullptr) {
                return nullptr;
            }
        }
        std::vector<jit::Value*> results;
        for (const ValueId id : site_.match.results) {
            results.push_back(values_.at(id));
        }
        made_->registerOutput(results.size() == 1
                                  ? results[0]
                                  : made_->insertNode(made_->createTuple(results))->output());
        return made_;
    }

    std::string problem;

private:
    static constexpr int deepest = 50;

    jit::Node* copy(jit::Node* node, std::int32_t frame, int depth) {
        if (depth > deepest) {
            problem = "what it reads is made of too much";
            return nullptr;
        }
        std::unordered_map<jit::Value*, jit::Value*> inputs;
        for (jit::Value* input : node->inputs()) {
            jit::Value* known = value_of(input, frame, depth);
            if (known == nullptr) {
                return nullptr;
            }
            inputs[input] = converted(known, *input->type());
        }
        jit::Node* clone = made_->insertNode(
            made_->createClone(node, [&](jit::Value* input) { return inputs.at(input); }));
        for (std::size_t i = 0; i < node->outputs().size(); ++i) {
            const ValueId id = graph_.value_in(frame, node->outputs()[i]);
            if (id != nothing) {
                values_.emplace(id, clone->outputs()[i]);
            }
        }
        return clone;
    }

    // A number that a trace keeps as a tensor.
    jit::Value* converted(jit::Value* value, const c10::Type& wanted) {
        const bool is_tensor = value->type()->kind() == c10::TypeKind::TensorType;
        if (wanted.kind() == c10::TypeKind::TensorType &&
            value->type()->kind() == c10::TypeKind::IntType) {
            return made_->insertNode(made_->createNumToTensor(value))->output();
        }
        return wanted.kind() == c10::TypeKind::IntType && is_tensor
                   ? made_->insert(c10::aten::Int, {value})
                   : value;
    }

    jit::Value* value_of(jit::Value* value, std::int32_t frame, int depth) {
        const ValueId id = graph_.value_in(frame, value);
        if (id != nothing) {
            if (const auto known = values_.find(id); known != values_.end()) {
                return known->second;
            }
            if (const c10::IValue* constant = graph_.constant_of(id)) {
                jit::Node* origin = graph_.value(id).from->node();
                return origin->kind() == c10::prim::Constant
                           ? made_
                                 ->insertNode(
                                     made_->createClone(origin, [](jit::Value* v) { return v; }))
                                 ->output()
                           : made_->insertConstant(*constant);
            }
        }
        jit::Node* node = value->node();
        if (value->type()->cast<c10::FunctionType>() != nullptr) {
            return made_->insertNode(made_->createClone(node, [](jit::Value* v) { return v; }))
                ->output();
        }
        if (node->kind() == c10::prim::Param) {
            return of_caller(value, frame, depth);
        }
        const bool plain = node->blocks().empty() && node->kind() != c10::prim::GetAttr &&
                           node->kind() != c10::prim::CallMethod;
        if (!plain) {
            problem = fmt::format("it reads what {} gives, which is no parameter of the formula",
                                  node->kind().toQualString());
            return nullptr;
        }
        jit::Node* clone = copy(node, frame, depth + 1);
        return clone == nullptr ? nullptr : clone->outputs()[value->offset()];
    }

    jit::Value* of_caller(const jit::Value* value, std::int32_t frame, int depth) {
        const Frame& inner = graph_.frame(frame);
        if (frame == site_.frame || inner.call == nullptr) {
            problem = "it reads an argument of the method that is no parameter of the formula";
            return nullptr;
        }
        const std::size_t first = inner.call->kind() == c10::prim::CallFunction ? 1 : 0;
        return value_of(inner.call->input(value->offset() + first), inner.parent, depth + 1);
    }

    const FlatGraph& graph_;
    const PatternSite& site_;
    std::shared_ptr<jit::Graph> made_ = std::make_shared<jit::Graph>();
    std::unordered_map<ValueId, jit::Value*> values_;
};

class Editor {
public:
    Editor(const FlatGraph& flat, jit::Graph& graph) : flat_(flat), graph_(graph) {}

    // The error leaves the graph with the same meaning.
    tl::expected<void, std::string> put(const PatternCall& call) {
        site_ = call.site;
        std::vector<jit::Node*> nodes;
        for (const std::int32_t index : site_->match.nodes) {
            const FlatNode& one = flat_.node(index);
            nodes.push_back(here(one.node->output(0), one.frame)->node());
        }
        const std::unordered_set<const jit::Node*> inside(nodes.begin(), nodes.end());
        std::vector<jit::Value*> results;
        for (const ValueId id : site_->match.results) {
            const FlatValue& value = flat_.value(id);
            results.push_back(here(value.from, value.frame));
        }
        jit::Node* point = point_for(nodes, inside, results);
        std::vector<jit::Value*> arguments;
        const jit::WithInsertPoint at_point(point);
        for (const MatchedParameter& parameter : site_->match.parameters) {
            jit::Value* value = parameter.constant ? graph_.insertConstant(*parameter.constant)
                                                   : read(parameter.use);
            if (!is_before(value, point, 0)) {
                return tl::make_unexpected(
                    std::string("its results are used before all that it reads is there"));
            }
            arguments.push_back(value);
        }
        const auto made = insert_call(graph_, *call.function, arguments, results.size(),
                                      nodes.back()->sourceRange());
        for (std::size_t i = 0; i < results.size(); ++i) {
            results[i]->replaceAllUsesWith(made[i]);
            moved_[results[i]] = made[i];
        }
        dead_.insert(nodes.begin(), nodes.end());
        return {};
    }

    // What nobody reads any more.
    void clean() { remove_dead(graph_.block()); }

private:
    using Path = std::vector<const jit::Node*>;

    // What a value of a frame is in the edited graph.
    jit::Value* here(jit::Value* value, std::int32_t frame) {
        jit::Value* now = value;
        if (frame != site_->frame) {
            auto& known = inlined(frame);
            now = known.at(value);
        }
        for (auto next = moved_.find(now); next != moved_.end(); next = moved_.find(now)) {
            now = next->second;
        }
        return now;
    }

    Path path_of(std::int32_t frame) const {
        Path path;
        for (; frame != site_->frame; frame = flat_.frame(frame).parent) {
            path.push_back(flat_.frame(frame).call);
        }
        return path;
    }

    std::unordered_map<jit::Value*, jit::Value*>& inlined(std::int32_t frame) {
        const Path path = path_of(frame);
        if (const auto known = inlined_.find(path); known != inlined_.end()) {
            return known->second;
        }
        const Frame& inner = flat_.frame(frame);
        jit::Node* call = inner.call;
        if (inner.parent != site_->frame) {
            call = inlined(inner.parent).at(call->output())->node();
        }
        const jit::WithInsertPoint before(call);
        std::vector<jit::Value*> arguments;
        const std::size_t first = call->kind() == c10::prim::CallFunction ? 1 : 0;
        for (jit::Value* input : call->inputs().slice(first)) {
            arguments.push_back(input);
        }
        std::unordered_map<jit::Value*, jit::Value*> map;
        const auto outputs = jit::insertGraph(graph_, *inner.graph, arguments, map);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            call->outputs()[i]->replaceAllUsesWith(outputs[i]);
            moved_[call->outputs()[i]] = outputs[i];
        }
        dead_.insert(call);
        return inlined_.emplace(path, std::move(map)).first->second;
    }

    // Behind the last operator, or before the first one that uses a result.
    static jit::Node* point_for(const std::vector<jit::Node*>& nodes,
                                const std::unordered_set<const jit::Node*>& inside,
                                const std::vector<jit::Value*>& results) {
        jit::Node* last = nodes.front();
        for (jit::Node* node : nodes) {
            last = node->isAfter(last) ? node : last;
        }
        jit::Node* point = last->next();
        for (const jit::Value* result : results) {
            for (const jit::Use& use : result->uses()) {
                jit::Node* user = use.user;
                while (user->owningBlock() != last->owningBlock()) {
                    user = user->owningBlock()->owningNode();
                }
                if (user->kind() != c10::prim::Return && !inside.contains(user) &&
                    user->isBefore(point)) {
                    point = user;
                }
            }
        }
        return point;
    }

    // Without casts that do nothing.
    jit::Value* read(const FlatInput& use) {
        jit::Value* value = use.from;
        static const auto to = c10::Symbol::fromQualString("aten::to");
        while (value->node()->kind() == to &&
               flat_.value_in(use.frame, value->node()->input(0)) == use.value) {
            value = value->node()->input(0);
        }
        return here(value, use.frame);
    }

    // Attributes and constants can be read earlier than the model does.
    bool is_before(jit::Value* value, jit::Node* point, int depth) {
        jit::Node* node = value->node();
        if (node->kind() == c10::prim::Param || node->isBefore(point)) {
            return true;
        }
        if ((node->kind() != c10::prim::GetAttr && node->kind() != c10::prim::Constant) ||
            depth > 200) {
            return false;
        }
        for (jit::Value* input : node->inputs()) {
            if (!is_before(input, point, depth + 1)) {
                return false;
            }
        }
        node->moveBefore(point);
        return true;
    }

    static bool is_pure(const jit::Node* node) {
        static const std::set<std::string> kinds = {"prim::Constant",
                                                    "prim::GetAttr",
                                                    "prim::ListConstruct",
                                                    "prim::TupleConstruct",
                                                    "prim::TupleUnpack",
                                                    "prim::ListUnpack",
                                                    "prim::NumToTensor",
                                                    "prim::dtype",
                                                    "aten::Int",
                                                    "aten::ScalarImplicit",
                                                    "aten::to",
                                                    "aten::type_as",
                                                    "aten::size"};
        if (kinds.contains(node->kind().toQualString())) {
            return true;
        }
        const auto* schema = node->kind().is_aten() ? node->maybeSchema() : nullptr;
        return schema != nullptr && !schema->is_mutable() && !node->hasSideEffects() &&
               !node->isNondeterministic();
    }

    void remove_dead(jit::Block* block) {
        std::vector<jit::Node*> all(block->nodes().begin(), block->nodes().end());
        for (auto node = all.rbegin(); node != all.rend(); ++node) {
            for (jit::Block* inner : (*node)->blocks()) {
                remove_dead(inner);
            }
            if (!(*node)->hasUses() && (dead_.contains(*node) || is_pure(*node))) {
                (*node)->destroy();
            }
        }
    }

    const FlatGraph& flat_;
    jit::Graph& graph_;
    const PatternSite* site_ = nullptr;
    std::map<Path, std::unordered_map<jit::Value*, jit::Value*>> inlined_;
    std::unordered_map<jit::Value*, jit::Value*> moved_;
    // Destroyed at the end: until then every value keeps its address to itself.
    std::unordered_set<const jit::Node*> dead_;
};

}  // namespace

tl::expected<jit::Function*, std::string> original_of(const FlatGraph& graph,
                                                      const PatternSite& site,
                                                      jit::CompilationUnit& unit,
                                                      const c10::QualifiedName& name) {
    OriginalBuilder builder(graph, site);
    const auto body = builder.build();
    if (body == nullptr) {
        return tl::make_unexpected(builder.problem);
    }
    return unit.create_function(unit.mangle(name), body);
}

std::map<const PatternSite*, std::string> put_calls(const FlatGraph& graph, jit::Function& method,
                                                    const std::vector<PatternCall>& calls) {
    std::map<const PatternSite*, std::string> problems;
    Editor editor(graph, *jit::toGraphFunction(method).graph());
    for (const PatternCall& call : calls) {
        if (const auto done = editor.put(call); !done) {
            problems.emplace(call.site, done.error());
        }
    }
    editor.clean();
    return problems;
}

c10::QualifiedName numbered(const std::string& prefix, const PatternSite& site) {
    const std::string number = site.number > 1 ? fmt::format("_{}.", site.number) : "";
    return c10::QualifiedName("__torch__." + prefix + pattern_function_name(number) +
                              site.rule->pattern->name);
}

void outline_patterns(const jit::Module& model, const std::vector<PatternRule>& rules,
                      const std::vector<std::string>& sites) {
    const bool any = std::any_of(sites.begin(), sites.end(), [](const std::string& site) {
        return site.find(":" + pattern_function_name("")) != std::string::npos;
    });
    if (!any) {
        return;
    }
    const PatternSearch search = find_patterns(model, rules);
    const std::set<std::string> wanted(sites.begin(), sites.end());
    std::map<jit::Function*, std::vector<PatternCall>> calls;
    std::set<std::pair<jit::Function*, std::string>> known;
    for (const PatternSite& site : search.sites) {
        if (!wanted.contains(site.site) || !known.emplace(site.method, site.key).second) {
            continue;
        }
        auto& unit = *site.instance.module.type()->compilation_unit();
        if (const auto original = original_of(search.graph, site, unit, numbered("", site))) {
            calls[site.method].push_back({&site, *original});
        }
    }
    for (const auto& [method, all] : calls) {
        put_calls(search.graph, *method, all);
    }
}

}  // namespace twinkle::runtime
