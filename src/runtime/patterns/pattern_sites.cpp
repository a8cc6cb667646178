#include "runtime/patterns/pattern_sites.h"
#include "runtime/graph/format.h"

#include "runtime/graph/function_calls.h"
#include "runtime/patterns/compiled_formulas.h"
#include "runtime/patterns/openable_modules.h"
#include "runtime/patterns/pattern_homes.h"
#include "runtime/selection/context.h"
#include "runtime/selection/modes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

std::string text_of(const c10::IValue& value) {
    if (value.isDouble()) {
        return fmt::format("Double:{}", value.toDouble());
    }
    if (value.isInt()) {
        return fmt::format("Int:{}", value.toInt());
    }
    return fmt::format("{}:{}", value.tagKind(), c10::str(value));
}

class Search {
public:
    Search(const std::vector<Instance>& instances, const Mapping& mapping,
           const std::vector<PatternRule>& rules, const std::vector<FunctionCall>& calls,
           PatternSearch& into)
        : rules_(rules), into_(into), openable_(mapping, calls) {
        for (const Instance& instance : instances) {
            instances_.emplace(instance.module._ivalue().get(), instance);
        }
        for (const FunctionCall& call : calls) {
            if (call.replaced) {
                taken_.insert(call.site);
            }
        }
    }

    void run() {
        std::vector<PlacedMatch> matches = all_matches();
        const FrameTests tests{[&](const Frame& one) { return instances_.contains(one.object); },
                               [&](const Frame& one) {
                                   const auto instance = instances_.find(one.object);
                                   return instance != instances_.end() &&
                                          openable_.contain(instance->second, *one.function);
                               }};
        opened_ = bring_together(into_.graph, matches, tests);
        std::vector<std::vector<PlacedMatch>> of_rules(rules_.size());
        std::vector<std::unordered_set<ValueId>> places(rules_.size());
        for (PlacedMatch& one : matches) {
            if (places[one.rule].insert(one.match.results[0]).second) {
                forget_constants_of_callers(one.match, one.home.frame);
                of_rules[one.rule].push_back(std::move(one));
            }
        }
        for (std::vector<PlacedMatch>& found : of_rules) {
            enter(std::move(found));
        }
        refuse_other_calls();
    }

private:
    // The object that a method is called on, by address, and the method.
    using Method = std::pair<const void*, jit::Function*>;
    struct Hash {
        std::size_t operator()(const Method& method) const {
            return std::hash<const void*>()(method.first) * 31 +
                   std::hash<jit::Function*>()(method.second);
        }
    };

    const Frame& frame(std::int32_t id) const { return into_.graph.frame(id); }

    std::vector<PlacedMatch> all_matches() {
        std::vector<PlacedMatch> all;
        for (std::size_t rule = 0; rule < rules_.size(); ++rule) {
            for (const auto& formula : rules_[rule].formulas) {
                auto matches = find_formula(into_.graph, *formula);
                if (!matches) {
                    into_.warnings.push_back(fmt::format("the pattern {} was not looked for: {}",
                                                         rules_[rule].pattern->name,
                                                         matches.error()));
                    continue;
                }
                for (FormulaMatch& match : *matches) {
                    all.push_back({rule, formula.get(), std::move(match), {}});
                }
            }
        }
        return all;
    }

    std::vector<std::string> paths_of(const std::vector<std::int32_t>& frames) const {
        std::vector<std::string> paths;
        for (const std::int32_t id : frames) {
            if (const auto known = instances_.find(frame(id).object); known != instances_.end()) {
                paths.push_back(known->second.path);
            }
        }
        return paths;
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

    // What two occurrences in one method have in common: the nodes with the calls on the way, the
    // formula and its constants.
    std::string key_of(const PlacedMatch& found) const {
        const ValueId result = found.match.results.front();
        std::string key =
            fmt::format("{}|{}", found.formula->name, into_.graph.value(result).output);
        add_way(key, *into_.graph.node_of(result), found.home.frame);
        for (const std::int32_t node : found.match.nodes) {
            add_way(key, into_.graph.node(node), found.home.frame);
        }
        for (const MatchedParameter& parameter : found.match.parameters) {
            key += "|";
            key += parameter.constant ? text_of(*parameter.constant) : "";
        }
        return key;
    }

    // Instances share the nodes of their code: only the calls tell them apart.
    void add_way(std::string& key, const FlatNode& node, std::int32_t home) const {
        fmt::format_to(std::back_inserter(key), "|{}", fmt::ptr(node.node));
        for (std::int32_t at = node.frame; at != home; at = frame(at).parent) {
            fmt::format_to(std::back_inserter(key), "|{}", fmt::ptr(frame(at).call));
        }
    }

    void enter(std::vector<PlacedMatch> found) {
        std::sort(found.begin(), found.end(), [&](const PlacedMatch& a, const PlacedMatch& b) {
            return a.match.nodes.back() < b.match.nodes.back();
        });
        std::map<std::pair<Method, std::string>, std::size_t> known;  // index of sites
        for (PlacedMatch& one : found) {
            const Method method{frame(one.home.frame).object, frame(one.home.frame).function};
            std::string key = key_of(one);
            const auto [at, first] =
                known.emplace(std::pair(method, std::move(key)), into_.sites.size());
            if (first) {
                into_.sites.push_back(site(one, at->first.second,
                                           numbers_[{rules_[one.rule].pattern->name, method}]));
                occurrences_.push_back(0);
            }
            PatternSite& site = into_.sites[at->second];
            ++occurrences_[at->second];
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
    }

    void refuse_other_calls() {
        std::unordered_map<Method, std::int32_t, Hash> calls;
        for (const PatternSite& site : into_.sites) {
            calls.emplace(Method(frame(site.frame).object, site.method), 0);
        }
        const auto all = static_cast<std::int32_t>(into_.graph.frames.size());
        for (std::int32_t id = 0; id < all && !calls.empty(); ++id) {
            const Frame& one = frame(id);
            if (one.object != nullptr && !opened_.contains(id)) {
                const auto known = calls.find({one.object, one.function});
                if (known != calls.end()) {
                    ++known->second;
                }
            }
        }
        for (std::size_t i = 0; i < into_.sites.size(); ++i) {
            PatternSite& site = into_.sites[i];
            if (occurrences_[i] != calls.at({frame(site.frame).object, site.method})) {
                site.match.problem = "not every call of " + site.method->name() + " computes it";
            }
        }
    }

    PatternSite site(const PlacedMatch& found, const std::string& key, std::size_t& number) const {
        PatternSite made;
        made.rule = &rules_[found.rule];
        made.formula = found.formula;
        made.instance = instances_.at(frame(found.home.frame).object);
        made.method = frame(found.home.frame).function;
        made.match = found.match;
        made.frame = found.home.frame;
        made.taken = paths_of(found.home.taken);
        made.key = key;
        const std::string name = (made.instance.path.empty() ? "" : made.instance.path + ".") +
                                 made.method->name() + ":" +
                                 pattern_function_name(made.rule->pattern->name);
        do {
            made.number = ++number;
            made.site = name + (number > 1 ? fmt::format("#{}", number) : "");
        } while (taken_.contains(made.site));
        return made;
    }

    const std::vector<PatternRule>& rules_;
    PatternSearch& into_;
    OpenableModules openable_;
    std::unordered_set<std::int32_t> opened_;  // frames
    std::unordered_map<const void*, Instance> instances_;
    std::unordered_set<std::string> taken_;  // by an earlier kernelize
    // The numbers given so far, by pattern name (several rules may share one) and method.
    std::map<std::pair<std::string, Method>, std::size_t> numbers_;
    std::vector<std::int32_t> occurrences_;  // by site
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
        for (const std::string& name : pattern.formulas) {
            const auto formula = compiled_formula(pattern.file, pattern.source, name);
            if (formula) {
                rule.formulas.push_back(*formula);
            } else {
                rule.problems.push_back(pattern.file + ": " + name + ": " + formula.error());
            }
        }
        rules.push_back(std::move(rule));
    }
    return rules;
}

PatternSearch find_patterns(const jit::Module& model, const Mapping& mapping,
                            const std::vector<PatternRule>& rules, bool may_train) {
    PatternSearch search;
    auto graph = flatten(model, !may_train && !wants_training(mode_for(model, std::nullopt)));
    if (!graph) {
        search.warnings.push_back("no pattern was looked for in this model: " + graph.error());
        return search;
    }
    search.graph = std::move(*graph);
    const bool any_calls = search.graph.has_stand_ins || !mapping.functions.empty();
    const auto calls = any_calls ? function_calls(model) : std::vector<FunctionCall>();
    Search(instances_of(model), mapping, rules, calls, search).run();
    return search;
}

}  // namespace twinkle::runtime
