// The part of a kernelize that replaces calls of functions, callers before what they call: what
// stands in a function that nothing calls any more is no site.

#include "runtime/plan/kernelizer.h"

#include "runtime/graph/called_instances.h"
#include "runtime/graph/sites.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

struct Kernelizer::CallReplacer {
    explicit CallReplacer(Kernelizer& kernelizer) : in(kernelizer), called(in.model_) {
        FunctionUses uses;
        for (FunctionCall& call : function_calls(in.model_, &uses)) {
            calls.emplace(call.site, std::move(call));
        }
        for (const auto& [function, all] : uses.of) {
            for (const FunctionUse& use : all) {
                if (use.function == nullptr) {
                    left.emplace(function, method_name(use));
                }
            }
        }
        for (Instance& instance : instances_of(in.model_)) {
            instances.emplace(instance.path, std::move(instance.module));
        }
        for (Site& site : in.sites_) {
            if (site.is_call && site.place.empty() && !site.inlined) {
                sites.emplace(site.report.site, &site);
                in_functions[site.in_function].push_back(&site);
            }
        }
    }

    void run() {
        for (Site* site : in_functions[nullptr]) {
            replace(*site);
        }
        for (const jit::Function* function : callers_first()) {
            const auto inside = in_functions.find(function);
            holders.emplace(function, holders_of(function));
            if (inside == in_functions.end()) {
                continue;
            }
            for (Site* site : inside->second) {
                if (!absorb(*site, holders.at(function))) {
                    replace(*site);
                }
            }
        }
    }

private:
    // The sites whose replacement has left something uncalled; none: it is called.
    using Holders = std::optional<std::set<Site*>>;

    std::vector<const jit::Function*> callers_first() const {
        std::unordered_map<const jit::Function*, std::vector<const jit::Function*>> calls_of;
        std::unordered_map<const jit::Function*, std::size_t> callers;
        std::vector<const jit::Function*> order;
        for (const jit::Function* function : in.uses_.functions) {
            for (const FunctionUse& use : in.uses_.of.at(function)) {
                if (use.function != nullptr) {
                    calls_of[use.function].push_back(function);
                    ++callers[function];
                }
            }
            if (callers[function] == 0) {
                order.push_back(function);
            }
        }
        for (std::size_t i = 0; i < order.size(); ++i) {
            for (const jit::Function* function : calls_of[order[i]]) {
                if (--callers[function] == 0) {
                    order.push_back(function);
                }
            }
        }
        // LibTorch has no functions that lead back to themselves.
        return order;
    }

    // Once all that stands in its callers is decided.
    Holders holders_of(const jit::Function* function) const {
        std::set<Site*> found;
        for (const FunctionUse& use : in.uses_.of.at(function)) {
            const auto site = sites.find(use.site);
            if (site != sites.end() && site->second->report.status == SiteStatus::replaced) {
                found.insert(site->second);
                continue;
            }
            const Holders around = use.function != nullptr ? known_holders(use.function)
                                                           : holders_of_method(function, use);
            if (!around) {
                return std::nullopt;
            }
            found.insert(around->begin(), around->end());
        }
        return found;
    }

    Holders known_holders(const jit::Function* function) const {
        const auto known = holders.find(function);
        return known != holders.end() ? known->second : std::nullopt;
    }

    // Of a method that is replaced or called no more.
    Holders holders_of_method(const jit::Function* function, const FunctionUse& use) const {
        const std::string method = method_name(use);
        if (left.contains({function, method}) &&
            called.contains(instances.at(use.path), use.method)) {
            return std::nullopt;
        }
        Site* layer = in.replaced_around(method);
        return layer != nullptr ? Holders({layer}) : std::nullopt;
    }

    static std::string method_name(const FunctionUse& use) {
        return (use.path.empty() ? "" : use.path + ".") + use.method;
    }

    static bool absorb(Site& site, const Holders& by) {
        if (by) {
            for (Site* holder : *by) {
                holder->add_part(site.report.site);
            }
            site.absorbed = true;
        }
        return site.absorbed;
    }

    void replace(Site& site) {
        if (!site.choice || site.absorbed) {
            return;
        }
        const auto call = calls.find(site.report.site);
        if (call == calls.end()) {
            return in.keep(site, {std::nullopt, "nothing that is left calls it"});
        }
        // Instances of a class share the call.
        auto result = done.find(call->second.node);
        if (result == done.end()) {
            result =
                done.emplace(call->second.node, in.replace_call(*site.choice, call->second)).first;
        }
        in.enter(site, result->second);
    }

    Kernelizer& in;
    CalledInstances called;
    // As the graphs are now: calls by site, and the methods that use a function.
    std::map<std::string, FunctionCall> calls;
    std::set<std::pair<const jit::Function*, std::string>> left;
    std::map<std::string, jit::Module> instances;
    std::map<std::string, Site*> sites;
    std::map<const jit::Function*, std::vector<Site*>> in_functions;
    std::map<const jit::Function*, Holders> holders;
    std::map<const jit::Node*, tl::expected<void, KeepReason>> done;
};

void Kernelizer::replace_calls() {
    replace_inlined();
    const bool any = std::any_of(sites_.begin(), sites_.end(), [](const Site& site) {
        return site.is_call && site.place.empty() && !site.absorbed && !site.inlined;
    });
    if (any) {
        CallReplacer(*this).run();
    }
}

}  // namespace twinkle::runtime
