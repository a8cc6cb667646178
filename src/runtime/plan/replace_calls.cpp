#include "runtime/plan/replace_calls.h"

#include "runtime/graph/called_instances.h"
#include "runtime/trace/region_call.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

class CallReplacer {
public:
    CallReplacer(const Job& job, Plan& plan, StandIns& stand_ins, const Holders& holders)
        : job_(job), plan_(plan), stand_ins_(stand_ins), holders_(holders), called_(job.model) {
        FunctionUses uses;
        for (FunctionCall& call : function_calls(job.model, &uses)) {
            calls_.emplace(call.site, std::move(call));
        }
        for (const auto& [function, all] : uses.of) {
            for (const FunctionUse& use : all) {
                if (use.function == nullptr) {
                    left_.emplace(function, method_name(use));
                }
            }
        }
        for (Instance& instance : instances_of(job.model)) {
            instances_.emplace(instance.path, std::move(instance.module));
        }
        for (Site& site : plan.sites) {
            if (const auto* call = site.as<CallSite>()) {
                sites_.emplace(site.report.site, &site);
                in_functions_[call->in_function].push_back(&site);
            }
        }
    }

    void run() {
        for (Site* site : in_functions_[nullptr]) {
            replace(*site);
        }
        for (const jit::Function* function : callers_first()) {
            const auto inside = in_functions_.find(function);
            known_.emplace(function, causes_of(function));
            if (inside == in_functions_.end()) {
                continue;
            }
            for (Site* site : inside->second) {
                if (!absorb(*site, known_.at(function))) {
                    replace(*site);
                }
            }
        }
    }

private:
    // The sites whose replacement has left something uncalled; none: it is called.
    using Causes = std::optional<std::set<Site*>>;

    std::vector<const jit::Function*> callers_first() const {
        std::unordered_map<const jit::Function*, std::vector<const jit::Function*>> calls_of;
        std::unordered_map<const jit::Function*, std::size_t> callers;
        std::vector<const jit::Function*> order;
        for (const jit::Function* function : plan_.uses.functions) {
            for (const FunctionUse& use : plan_.uses.of.at(function)) {
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
        // LibTorch has no recursive functions, so that the order is complete.
        return order;
    }

    // Needs a decision on all sites in its callers.
    Causes causes_of(const jit::Function* function) const {
        std::set<Site*> found;
        for (const FunctionUse& use : plan_.uses.of.at(function)) {
            const auto site = sites_.find(use.site);
            if (site != sites_.end() && site->second->is_replaced()) {
                found.insert(site->second);
                continue;
            }
            const Causes around = use.function != nullptr ? known_causes(use.function)
                                                          : causes_in_method(function, use);
            if (!around) {
                return std::nullopt;
            }
            found.insert(around->begin(), around->end());
        }
        return found;
    }

    Causes known_causes(const jit::Function* function) const {
        const auto known = known_.find(function);
        return known != known_.end() ? known->second : std::nullopt;
    }

    // The causes for a method that is replaced or no longer called.
    Causes causes_in_method(const jit::Function* function, const FunctionUse& use) const {
        const std::string method = method_name(use);
        if (left_.contains({function, method}) &&
            called_.contains(instances_.at(use.path), use.method)) {
            return std::nullopt;
        }
        Site* layer = holders_.replaced_around(method);
        return layer != nullptr ? Causes({layer}) : std::nullopt;
    }

    static std::string method_name(const FunctionUse& use) {
        return (use.path.empty() ? "" : use.path + ".") + use.method;
    }

    static bool absorb(Site& site, const Causes& by) {
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
        const auto call = calls_.find(site.report.site);
        if (call == calls_.end()) {
            return keep(job_, site, {std::nullopt, "nothing that is left calls it"});
        }
        // Instances of a class share the call.
        auto result = done_.find(call->second.node);
        if (result == done_.end()) {
            result = done_.emplace(call->second.node, replace_call(site, call->second)).first;
        }
        enter(job_, site, result->second);
    }

    tl::expected<void, KeepReason> replace_call(const Site& site, const FunctionCall& call) {
        const auto function = stand_ins_.of_call(site, call);
        if (!function) {
            return tl::make_unexpected(function.error());
        }
        call_instead(call.node, *function);
        return {};
    }

    const Job& job_;
    Plan& plan_;
    StandIns& stand_ins_;
    const Holders& holders_;
    CalledInstances called_;
    // The state of the graphs now: calls by site, and the methods that use a function.
    std::map<std::string, FunctionCall> calls_;
    std::set<std::pair<const jit::Function*, std::string>> left_;
    std::map<std::string, jit::Module> instances_;
    std::map<std::string, Site*> sites_;
    std::map<const jit::Function*, std::vector<Site*>> in_functions_;
    std::map<const jit::Function*, Causes> known_;
    std::map<const jit::Node*, tl::expected<void, KeepReason>> done_;
};

}  // namespace

void replace_calls(const Job& job, Plan& plan, StandIns& stand_ins, const Holders& holders) {
    const bool any = std::any_of(plan.sites.begin(), plan.sites.end(), [](const Site& site) {
        return site.as<CallSite>() != nullptr && !site.absorbed;
    });
    if (any) {
        CallReplacer(job, plan, stand_ins, holders).run();
    }
}

}  // namespace twinkle::runtime
