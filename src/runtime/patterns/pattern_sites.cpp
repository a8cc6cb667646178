#include "runtime/patterns/pattern_sites.h"
#include "runtime/format.h"

#include "runtime/patterns/compiled_formulas.h"
#include "runtime/rewrite/function_calls.h"

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
    Search(const jit::Module& model, const std::vector<PatternRule>& rules, PatternSearch& into)
        : rules_(rules), into_(into) {
        for (Instance& instance : instances_of(model)) {
            const void* object = instance.module._ivalue().get();
            instances_.emplace(object, std::move(instance));
        }
        if (into.graph.has_stand_ins) {
            for (const FunctionCall& call : function_calls(model)) {
                if (call.replaced) {
                    taken_.insert(call.site);
                }
            }
        }
    }

    void run() {
        for (const PatternRule& rule : rules_) {
            std::unordered_set<ValueId> places;
            std::vector<Found> found;
            for (const auto& formula : rule.formulas) {
                auto matches = find_formula(into_.graph, *formula);
                if (!matches) {
                    into_.warnings.push_back(fmt::format("the pattern {} was not looked for: {}",
                                                         rule.pattern->name, matches.error()));
                    continue;
                }
                for (FormulaMatch& match : *matches) {
                    const auto home = home_of(match);
                    if (home && places.insert(match.results[0]).second) {
                        forget_constants_of_callers(match, *home);
                        found.push_back({std::move(match), formula.get(), *home});
                    }
                }
            }
            enter(rule, std::move(found));
        }
        refuse_other_calls();
    }

private:
    struct Found {
        FormulaMatch match;
        const Formula* formula;
        std::int32_t home;
    };
    // Of which object it is called; by the address of the method.
    using Method = std::pair<const void*, jit::Function*>;
    struct Hash {
        std::size_t operator()(const Method& method) const {
            return std::hash<const void*>()(method.first) * 31 +
                   std::hash<jit::Function*>()(method.second);
        }
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
        return instances_.contains(frame(home).object) && is_whole(match, home)
                   ? std::optional(home)
                   : std::nullopt;
    }

    // Whether nothing of it lies in a branch of what is called, and what is called of other modules
    // is part of it as a whole.
    bool is_whole(const FormulaMatch& match, std::int32_t home) const {
        c10::SmallVector<std::pair<std::int32_t, std::int32_t>, 8> crossed;  // frame, nodes in it
        for (const std::int32_t node : match.nodes) {
            const FlatNode& one = into_.graph.node(node);
            if (one.frame != home && one.node->owningBlock() != frame(one.frame).graph->block()) {
                return false;
            }
            for (std::int32_t at = one.frame; at != home; at = frame(at).parent) {
                auto known = std::find_if(crossed.begin(), crossed.end(),
                                          [&](const auto& entry) { return entry.first == at; });
                if (known == crossed.end()) {
                    crossed.emplace_back(at, 0);
                    known = crossed.end() - 1;
                }
                ++known->second;
            }
        }
        return std::all_of(crossed.begin(), crossed.end(), [&](const auto& entry) {
            const auto& [at, count] = entry;
            const std::int32_t parent = frame(at).parent;
            return (frame(at).object == nullptr || count >= frame(at).nodes) &&
                   (parent == home ||
                    frame(at).call->owningBlock() == frame(parent).graph->block());
        });
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

    // What two occurrences in one method have in common: the calls on the way, the node, the
    // formula and its constants.
    std::string key_of(const Found& found) const {
        const ValueId result = found.match.results.front();
        const FlatNode& top = *into_.graph.node_of(result);
        std::string key = fmt::format("{}|{}|{}", found.formula->name, fmt::ptr(top.node),
                                      into_.graph.value(result).output);
        for (std::int32_t at = top.frame; at != found.home; at = frame(at).parent) {
            fmt::format_to(std::back_inserter(key), "|{}", fmt::ptr(frame(at).call));
        }
        for (const MatchedParameter& parameter : found.match.parameters) {
            key += "|";
            key += parameter.constant ? text_of(*parameter.constant) : "";
        }
        return key;
    }

    void enter(const PatternRule& rule, std::vector<Found> found) {
        std::sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
            return a.match.nodes.back() < b.match.nodes.back();
        });
        std::map<std::pair<Method, std::string>, std::size_t> known;  // index of sites
        for (Found& one : found) {
            const Method method{frame(one.home).object, frame(one.home).function};
            std::string key = key_of(one);
            const auto [at, first] =
                known.emplace(std::pair(method, std::move(key)), into_.sites.size());
            if (first) {
                into_.sites.push_back(
                    site(rule, one, at->first.second, numbers_[{rule.pattern->name, method}]));
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
        for (const Frame& one : into_.graph.frames) {
            if (one.object != nullptr && !calls.empty()) {
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

    PatternSite site(const PatternRule& rule, const Found& found, const std::string& key,
                     std::size_t& number) const {
        PatternSite made;
        made.rule = &rule;
        made.formula = found.formula;
        made.instance = instances_.at(frame(found.home).object);
        made.method = frame(found.home).function;
        made.match = found.match;
        made.frame = found.home;
        made.key = key;
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
    std::unordered_map<const void*, Instance> instances_;
    std::unordered_set<std::string> taken_;  // by an earlier kernelize
    // By the pattern's name, which several rules may have, and the method.
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
