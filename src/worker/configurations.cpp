#include "worker/configurations.h"

#include "runtime/graph/forward_methods.h"
#include "runtime/graph/kernel_method.h"
#include "runtime/graph/operator_configuration.h"

#include <algorithm>

namespace twinkle::worker {

namespace jit = torch::jit;
using runtime::Choice;

namespace {

constexpr std::size_t most = 16;  // of one candidate

// The code that serves the site now.
std::vector<std::shared_ptr<jit::Graph>> code_of(const jit::Module& model,
                                                 const runtime::Site& site) {
    std::vector<std::shared_ptr<jit::Graph>> code;
    const auto add = [&](jit::Function& function) {
        if (auto* compiled = jit::tryToGraphFunction(function)) {
            code.push_back(compiled->graph());
        }
    };
    if (site.is_layer()) {
        const jit::Module instance = runtime::instance_at(model, site.instance.path);
        for (jit::Function* method : instance.type()->methods()) {
            if (runtime::is_of_a_kernel(*method)) {
                add(*method);
            }
        }
        return code;
    }
    for (const runtime::FunctionCall& call : runtime::function_calls(model)) {
        if (call.site == site.report.site) {
            add(call.callee());
        }
    }
    return code;
}

// The first operator that its code calls and that is declared.
const tuning::OperatorTuning* tuned_operator(const jit::Module& model, const runtime::Site& site,
                                             const tuning::Declaration& declaration) {
    for (const auto& graph : code_of(model, site)) {
        for (const std::string& name :
             runtime::operators_called(*graph, site.choice->kernel->op_namespace)) {
            const auto* tuned = declaration.find(name);
            if (tuned != nullptr && tuned->forward) {
                return tuned;
            }
        }
    }
    return nullptr;
}

CfgFields fields_of(const base::Json& cfg) {
    return fields_from_json(base::json_line(cfg));
}

bool is_part_of(const CfgFields& cfg, const CfgFields& all) {
    return std::all_of(cfg.begin(), cfg.end(), [&](const auto& field) {
        const auto found = all.find(field.first);
        return found != all.end() && found->second == field.second;
    });
}

// Each once, of all sizes that are measured, first what the build says is best in one; but not what
// its operator does where it is given none.
std::vector<base::Json> worth_trying(const tuning::Tunable& tunable,
                                     const std::vector<tuning::Properties>& properties,
                                     const SizedSite& sized, const CfgFields& without) {
    std::vector<base::Json> said, others, all;
    for (std::size_t i = 0; i < properties.size(); ++i) {
        if (sized.sizes()[i].tuned) {
            if (const auto best = tunable.default_for(properties[i])) {
                said.push_back(*best);
            }
            const auto allowed = tunable.configurations(properties[i]);
            others.insert(others.end(), allowed.begin(), allowed.end());
        }
    }
    said.insert(said.end(), others.begin(), others.end());
    for (const base::Json& cfg : said) {
        if (!is_part_of(fields_of(cfg), without) && all.size() < most &&
            std::find(all.begin(), all.end(), cfg) == all.end()) {
            all.push_back(cfg);
        }
    }
    return all;
}

}  // namespace

bool Configurations::are_known(const runtime::Site& site, const Choice& choice) const {
    return mode_ != RunMode::inference || choice.kernel == nullptr || !choice.cfg.empty() ||
           known_.contains({site.report.site, choice.id()});
}

void Configurations::add_none(const runtime::Site& site) {
    known_.emplace(site.report.site, site.choice->id());
}

void Configurations::add(const jit::Module& model, runtime::Site& site, SizedSite& sized,
                         int threads) {
    add_none(site);
    const Choice plain = *site.choice;
    const auto* tuned = tuned_operator(model, site, declarations_.of(*plain.kernel));
    if (tuned == nullptr) {
        return;
    }
    std::vector<tuning::Properties> properties;  // by size
    for (const SizedSite::Size& size : sized.sizes()) {
        properties.push_back(tuned->properties_of(size.invocation, threads));
    }
    const CfgFields without = runtime::keyword_defaults(plain.kernel->op_namespace, tuned->name);
    for (const base::Json& cfg : worth_trying(*tuned->forward, properties, sized, without)) {
        Choice choice = plain;
        choice.cfg = fields_of(cfg);
        std::vector<bool> allowed;
        for (const tuning::Properties& of_size : properties) {
            allowed.push_back(tuned->forward->allows(cfg, of_size));
        }
        site.candidates.push_back({choice, ""});
        sized.add(choice, std::move(allowed));
    }
}

}  // namespace twinkle::worker
