#include "runtime/patterns/pattern_calls.h"
#include "runtime/graph/format.h"

#include "runtime/classes/own_class.h"
#include "runtime/patterns/opened_method.h"
#include "runtime/patterns/original_function.h"
#include "runtime/trace/region_call.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <set>
#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// Puts calls into one method.
class Editor {
public:
    Editor(const FlatGraph& flat, const UneditedGraphs& unedited, jit::Function& method)
        : flat_(flat),
          graph_(*jit::toGraphFunction(method).graph()),
          opened_(flat, unedited, graph_) {}

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
            results.push_back(here(flat_.value(id)));
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
            opened_.replace(results[i], made[i]);
        }
        for (const AskedForDimensions& one : site_->match.dimensions) {
            replace_outside(inside, here(flat_.value(one.inside)), here(one.same));
        }
        opened_.set_dead(nodes);
        return {};
    }

    void clean() { opened_.clean(); }

private:
    jit::Value* here(jit::Value* value, std::int32_t frame) {
        return opened_.here(value, frame, site_->frame);
    }

    jit::Value* here(const FlatValue& value) { return here(value.from, value.frame); }
    jit::Value* here(const FlatInput& input) { return here(input.from, input.frame); }

    static void replace_outside(const std::unordered_set<const jit::Node*>& inside,
                                jit::Value* value, jit::Value* by) {
        for (const jit::Use& use : std::vector<jit::Use>(value->uses())) {
            if (!inside.contains(use.user)) {
                use.user->replaceInput(use.offset, by);
            }
        }
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

    // Skips casts that do nothing.
    jit::Value* read(const FlatInput& use) {
        jit::Value* value = use.from;
        static const auto to = c10::Symbol::fromQualString("aten::to");
        while (value->node()->kind() == to &&
               flat_.value_in(use.frame, value->node()->input(0)) == use.value) {
            value = value->node()->input(0);
        }
        return here(value, use.frame);
    }

    // Attributes and constants can be read earlier than the model does, and lists made of them.
    bool is_before(jit::Value* value, jit::Node* point, int depth) {
        jit::Node* node = value->node();
        if (node->kind() == c10::prim::Param || node->isBefore(point)) {
            return true;
        }
        const bool movable = node->kind() == c10::prim::GetAttr ||
                             node->kind() == c10::prim::Constant ||
                             node->kind() == c10::prim::ListConstruct;
        if (!movable || depth > 200) {
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

    const FlatGraph& flat_;
    jit::Graph& graph_;
    OpenedMethod opened_;
    const PatternSite* site_ = nullptr;
};

// What some calls change and others take over from a caller's side, as it was.
UneditedGraphs keep_what_others_open(const FlatGraph& graph,
                                     const std::vector<PatternCall>& calls) {
    std::unordered_set<const jit::Function*> edited;
    for (const PatternCall& call : calls) {
        edited.insert(call.site->method);
    }
    UneditedGraphs unedited;
    for (const PatternCall& call : calls) {
        for (const std::int32_t node : call.site->match.nodes) {
            for (std::int32_t at = graph.node(node).frame; at != call.site->frame;
                 at = graph.frame(at).parent) {
                if (edited.contains(graph.frame(at).function)) {
                    unedited.keep(graph.frame(at).graph);
                }
            }
        }
    }
    return unedited;
}

// Instances of a class of which not the same sites are wanted.
Treatments treatments_of(const PatternSearch& search, const std::set<std::string>& wanted) {
    std::map<const void*, std::string> keys;
    for (const PatternSite& site : search.sites) {
        if (wanted.contains(site.site)) {
            keys[site.instance.module._ivalue().get()] += site.key + "\n";
        }
    }
    std::map<std::string, std::size_t> numbers;
    Treatments treatments;
    for (const auto& [instance, key] : keys) {
        treatments[instance] = numbers.emplace(key, numbers.size() + 1).first->second;
    }
    return treatments;
}

}  // namespace

std::map<const PatternSite*, std::string> put_calls(const FlatGraph& graph,
                                                    const std::vector<PatternCall>& calls) {
    const UneditedGraphs unedited = keep_what_others_open(graph, calls);
    std::map<const PatternSite*, std::string> problems;
    std::map<const jit::Function*, Editor> editors;
    for (const PatternCall& call : calls) {
        jit::Function* method = call.site->method;
        Editor& editor = editors.try_emplace(method, graph, unedited, *method).first->second;
        if (const auto done = editor.put(call); !done) {
            problems.emplace(call.site, done.error());
        }
    }
    for (auto& [method, editor] : editors) {
        editor.clean();
    }
    return problems;
}

c10::QualifiedName numbered(const std::string& prefix, const PatternSite& site) {
    const std::string number = site.number > 1 ? fmt::format("_{}.", site.number) : "";
    return c10::QualifiedName("__torch__." + prefix + pattern_function_name(number) +
                              site.rule->pattern->name);
}

void outline_patterns(const jit::Module& model, const Mapping& mapping,
                      const std::vector<PatternRule>& rules, bool may_train,
                      const std::vector<std::string>& sites) {
    const bool any = std::any_of(sites.begin(), sites.end(), [](const std::string& site) {
        return site.find(":" + pattern_function_name("")) != std::string::npos;
    });
    if (!any) {
        return;
    }
    const std::set<std::string> wanted(sites.begin(), sites.end());
    PatternSearch search = find_patterns(model, mapping, rules, may_train);
    jit::Module root = model;
    if (const auto apart = separate_classes(root, treatments_of(search, wanted)); apart && *apart) {
        search = find_patterns(model, mapping, rules, may_train);
    }
    std::vector<PatternCall> calls;
    std::set<std::pair<jit::Function*, std::string>> known;
    for (const PatternSite& site : search.sites) {
        if (!wanted.contains(site.site) || !known.emplace(site.method, site.key).second) {
            continue;
        }
        auto& unit = *site.instance.module.type()->compilation_unit();
        if (const auto original = original_of(search.graph, site, unit, numbered("", site))) {
            calls.push_back({&site, *original});
        }
    }
    put_calls(search.graph, calls);
}

}  // namespace twinkle::runtime
