#include "runtime/patterns/pattern_sites.h"
#include "runtime/format.h"

#include "base/text.h"
#include "runtime/rewrite/function_calls.h"
#include "runtime/source/single_file.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

std::string text_of(const c10::IValue& value) {
    return fmt::format("{}:{}", value.tagKind(), c10::str(value));
}

// What two occurrences in one method have in common: the calls on the way, the node, the formula
// and its constants.
using Key = std::vector<std::string>;

class Search {
public:
    Search(const jit::Module& model, const std::vector<PatternRule>& rules, PatternSearch& into)
        : rules_(rules), into_(into) {
        for (const Instance& instance : instances_of(model)) {
            instances_.emplace(instance.module._ivalue().get(), instance);
        }
        for (std::size_t i = 0; i < into.graph.frames.size(); ++i) {
            const Frame& frame = into.graph.frames[i];
            if (frame.object != nullptr) {
                ++calls_[{frame.object, frame.function}];
            }
        }
        for (const FunctionCall& call : function_calls(model)) {
            if (call.replaced) {
                taken_.insert(call.site);
            }
        }
    }

    void run() {
        for (const PatternRule& rule : rules_) {
            std::set<ValueId> places;
            std::vector<Found> found;
            for (const Formula& formula : rule.formulas) {
                auto matches = find_formula(into_.graph, formula);
                if (!matches) {
                    into_.warnings.push_back(fmt::format("the pattern {} was not looked for: {}",
                                                         rule.pattern->name, matches.error()));
                    continue;
                }
                for (FormulaMatch& match : *matches) {
                    const auto home = home_of(match);
                    if (home) {
                        forget_constants_of_callers(match, *home);
                    }
                    if (home && places.insert(match.results[0]).second) {
                        found.push_back({std::move(match), &formula, *home});
                    }
                }
            }
            enter(rule, std::move(found));
        }
    }

private:
    struct Found {
        FormulaMatch match;
        const Formula* formula;
        std::int32_t home;
    };

    const Frame& frame(std::int32_t id) const { return into_.graph.frame(id); }

    // The frame of the lowest method that holds all of it; none: it takes modules apart that do
    // more than this.
    std::optional<std::int32_t> home_of(const FormulaMatch& match) const {
        std::int32_t home = into_.graph.node(match.nodes.front()).frame;
        for (const std::int32_t node : match.nodes) {
            std::int32_t other = into_.graph.node(node).frame;
            while (home != other) {
                std::int32_t& deeper = frame(home).depth > frame(other).depth ? home : other;
                deeper = frame(deeper).parent;
                if (deeper == nothing) {
                    return std::nullopt;
                }
            }
        }
        while (frame(home).object == nullptr) {
            home = frame(home).parent;
            if (home == nothing) {
                return std::nullopt;
            }
        }
        if (!instances_.contains(frame(home).object)) {
            return std::nullopt;
        }
        std::map<std::int32_t, std::int32_t> crossed;  // how many nodes in each frame below
        for (const std::int32_t node : match.nodes) {
            const FlatNode& one = into_.graph.node(node);
            if (one.frame != home && one.node->owningBlock() != frame(one.frame).graph->block()) {
                return std::nullopt;  // in a branch of what is called
            }
            for (std::int32_t at = one.frame; at != home; at = frame(at).parent) {
                ++crossed[at];
            }
        }
        for (const auto& [at, count] : crossed) {
            const std::int32_t parent = frame(at).parent;
            const bool whole = count >= frame(at).nodes;
            if ((frame(at).object != nullptr && !whole) ||
                (parent != home && frame(at).call->owningBlock() != frame(parent).graph->block())) {
                return std::nullopt;
            }
        }
        return home;
    }

    // What a caller passes may be another constant in another call.
    void forget_constants_of_callers(FormulaMatch& match, std::int32_t home) const {
        for (MatchedParameter& parameter : match.parameters) {
            if (!parameter.constant || parameter.use.value == nothing) {
                continue;
            }
            std::int32_t at = into_.graph.value(parameter.use.value).frame;
            while (at != home && at != nothing) {
                at = frame(at).parent;
            }
            const bool tensor = parameter.use.from->type()->kind() == c10::TypeKind::TensorType;
            if (at == nothing && !tensor) {
                parameter.constant.reset();
            }
        }
    }

    Key key_of(const Found& found) const {
        const FlatNode& top = *into_.graph.node_of(found.match.results.front());
        Key key{found.formula->name, fmt::format("{}", fmt::ptr(top.node)),
                std::to_string(into_.graph.value(found.match.results.front()).output)};
        for (std::int32_t at = top.frame; at != found.home; at = frame(at).parent) {
            key.push_back(fmt::format("{}", fmt::ptr(frame(at).call)));
        }
        for (const MatchedParameter& parameter : found.match.parameters) {
            key.push_back(parameter.constant ? text_of(*parameter.constant) : "");
        }
        return key;
    }

    void enter(const PatternRule& rule, std::vector<Found> found) {
        std::sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
            return a.match.nodes.back() < b.match.nodes.back();
        });
        using Method = std::pair<const void*, jit::Function*>;
        std::map<Method, std::size_t> numbers;
        std::map<std::pair<Method, Key>, std::size_t> known;  // index of sites
        std::map<std::size_t, std::int32_t> occurrences;
        for (Found& one : found) {
            const Method method{frame(one.home).object, frame(one.home).function};
            const Key key = key_of(one);
            const auto [at, first] = known.emplace(std::pair(method, key), into_.sites.size());
            if (first) {
                into_.sites.push_back(site(rule, one, key, numbers[method]));
            }
            PatternSite& site = into_.sites[at->second];
            ++occurrences[at->second];
            // Numbers may be part of several.
            std::copy_if(one.match.nodes.begin(), one.match.nodes.end(),
                         std::back_inserter(site.claimed), [&](std::int32_t node) {
                             const auto& outputs = into_.graph.node(node).outputs;
                             return outputs.empty() ||
                                    into_.graph.value(outputs[0]).kind != ValueKind::number;
                         });
            if (site.match.problem.empty()) {
                site.match.problem = one.match.problem;
            }
        }
        for (const auto& [index, count] : occurrences) {
            PatternSite& site = into_.sites[index];
            if (count != calls_.at({frame(site.frame).object, site.method})) {
                site.match.problem = "not every call of " + site.method->name() + " computes it";
            }
        }
    }

    PatternSite site(const PatternRule& rule, const Found& found, const Key& key,
                     std::size_t& number) const {
        PatternSite made;
        made.rule = &rule;
        made.formula = found.formula;
        made.instance = instances_.at(frame(found.home).object);
        made.method = frame(found.home).function;
        made.match = found.match;
        made.frame = found.home;
        made.key = base::join(key, "|");
        const std::string name = (made.instance.path.empty() ? "" : made.instance.path + ".") +
                                 made.method->name() + ":" +
                                 pattern_function_name(rule.pattern->name);
        do {
            made.number = ++number;
            made.site = name + (number > 1 ? fmt::format("#{}", number) : "");
        } while (taken_.contains(made.site));
        return made;
    }

    const std::vector<PatternRule>& rules_;
    PatternSearch& into_;
    std::map<const void*, Instance> instances_;
    std::map<std::pair<const void*, jit::Function*>, std::int32_t> calls_;
    std::set<std::string> taken_;  // by an earlier kernelize
};

}  // namespace

std::string pattern_function_name(const std::string& pattern) {
    return "twinkle_patterns." + pattern;
}

std::string PatternSite::shape() const {
    std::string text = rule->pattern->name + "|" + formula->name;
    for (const MatchedParameter& parameter : match.parameters) {
        text += "|" + (parameter.constant ? text_of(*parameter.constant) : "");
    }
    return text;
}

std::vector<PatternRule> compile_patterns(const Mapping& mapping) {
    std::vector<PatternRule> rules;
    for (const MappedPattern& pattern : mapping.patterns) {
        PatternRule rule{&pattern, {}, {}};
        const std::string module = module_name_of(pattern.file);
        auto compilation = std::make_shared<Compilation>(
            std::make_shared<KernelPackage>(single_file_package(pattern.file, pattern.source)),
            std::make_shared<jit::CompilationUnit>(), false);
        for (const std::string& name : pattern.formulas) {
            auto formula = compile_formula(*compilation, module, name);
            if (formula) {
                rule.formulas.push_back(std::move(*formula));
            } else {
                rule.problems.push_back(pattern.file + ": " + name + ": " + formula.error());
            }
        }
        rules.push_back(std::move(rule));
    }
    return rules;
}

PatternSearch find_patterns(const jit::Module& model, const std::vector<PatternRule>& rules) {
    PatternSearch search;
    auto graph = flatten(model);
    if (!graph) {
        search.warnings.push_back("no pattern was looked for in this model: " + graph.error());
        return search;
    }
    search.graph = std::move(*graph);
    Search(model, rules, search).run();
    return search;
}

}  // namespace twinkle::runtime
