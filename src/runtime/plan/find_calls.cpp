#include "runtime/plan/find_calls.h"

#include "runtime/graph/forward_methods.h"
#include "runtime/plan/left_out.h"

#include <algorithm>
#include <map>
#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// Whether a function is a forward of a class; asked once for each class.
class Forwards {
public:
    bool contain(const c10::ClassTypePtr& type, const jit::Function* function) {
        auto own = by_type_.find(type.get());
        if (own == by_type_.end()) {
            own = by_type_.emplace(type.get(), forward_methods(type)).first;
        }
        return std::find(own->second.begin(), own->second.end(), function) != own->second.end();
    }

private:
    std::map<const void*, std::vector<jit::Function*>> by_type_;
};

}  // namespace

void find_calls(const Job& job, Plan& plan, std::set<std::string>& called) {
    Forwards forwards;
    for (const FunctionCall& call : function_calls(job.model, &plan.uses)) {
        called.insert(call.function);
        const auto function =
            std::find_if(job.mapping.functions.begin(), job.mapping.functions.end(),
                         [&](const auto& one) { return one.full_name() == call.function; });
        if (function == job.mapping.functions.end()) {
            continue;
        }
        Site site({call.path, "", call.instance}, reported(call.site, "function", call.function),
                  CallSite{forwards.contain(call.instance.type(), call.caller),
                           call.in_function ? call.caller : nullptr});
        if (!leave_out(job, site)) {
            if (call.replaced) {
                keep(job, site, {std::nullopt, "it is kernelized already"});
            } else {
                choose_from(job, site, candidates_for(job.mapping, *function, job.context));
            }
        }
        plan.sites.push_back(std::move(site));
    }
}

}  // namespace twinkle::runtime
