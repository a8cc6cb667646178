#include "runtime/plan/replace_layers.h"

#include "runtime/graph/called_instances.h"
#include "runtime/layers/host_attributes.h"
#include "runtime/layers/replacement.h"
#include "runtime/plan/substitution.h"

#include <algorithm>
#include <map>

namespace twinkle::runtime {

namespace {

// The layer sites with a choice, grouped by how many other such sites hold them.
std::vector<std::vector<Site*>> chosen_by_depth(Plan& plan) {
    std::vector<std::vector<Site*>> levels;
    std::vector<const Site*> above;  // sites around the current one, outermost first
    for (Site& site : plan.sites) {
        if (!site.choice || !site.is_layer()) {
            continue;
        }
        while (!above.empty() && !is_inside(site.instance.path, above.back()->instance.path)) {
            above.pop_back();
        }
        levels.resize(std::max(levels.size(), above.size() + 1));
        levels[above.size()].push_back(&site);
        above.push_back(&site);
    }
    return levels;
}

// Replaces each class once, however many instances it has.
class LayerReplacer {
public:
    LayerReplacer(const Job& job, KernelCode& code) : job_(job), code_(code) {}

    void replace(Site& site) {
        const void* type = site.instance.module.type().get();
        auto result = done_.find(type);
        if (result == done_.end()) {
            result = done_.emplace(type, replace_class(site)).first;
        }
        enter(job_, site, result->second);
    }

private:
    tl::expected<void, KeepReason> replace_class(const Site& site) {
        const auto& found = *site.as<LayerSite>();
        ReplacementRequest request{{}, found.passed, operator_use(job_)};
        const std::vector<Choice> choices = site.choices();
        for (const Choice& choice : choices) {
            const auto compilation = code_.of(choice, site.instance.module);
            if (!compilation) {
                return tl::make_unexpected(compilation.error());
            }
            job_.observe("compile", site.report.of);
            const auto& layer = *choice.as<LayerChoice>();
            auto host = supplied_attributes(found.lost, layer.binding->attributes);
            if (!host) {
                return tl::make_unexpected(KeepReason{Fallback::cannot_compile, host.error()});
            }
            request.layers.push_back({*compilation, layer.candidate->layer, std::move(*host),
                                      choice.kernel != nullptr ? choice.kernel->op_namespace : "",
                                      choice.cfg});
        }
        if (site.by_size) {
            request.input = site.by_size->input;
            for (const auto& [choice, up_to] : site.by_size->parts) {
                const auto layer =
                    choice ? std::find(choices.begin(), choices.end(), *choice) : choices.end();
                request.parts.push_back({layer != choices.end()
                                             ? std::optional<std::size_t>(layer - choices.begin())
                                             : std::nullopt,
                                         up_to});
            }
        }
        const auto type = site.instance.module.type();
        const std::size_t known = type->numAttributes();
        auto replaced = replace_forward(type, request);
        if (type->numAttributes() > known) {
            fill_new_attributes(type);
        }
        return replaced;
    }

    // Objects get no value for what their class has been given since: nobody may read these before.
    void fill_new_attributes(const c10::ClassTypePtr& type) {
        for (const Instance& instance : instances_of(job_.model)) {
            const auto object = instance.module._ivalue();
            if (object->type() == type) {
                for (std::size_t i = object->slots().size(); i < type->numAttributes(); ++i) {
                    object->setSlot(i, at::Tensor());
                }
            }
        }
    }

    const Job& job_;
    KernelCode& code_;
    std::map<const void*, tl::expected<void, KeepReason>> done_;  // by class
};

// Layers that change their weights come before those around them, which may read these: what holds
// them is compiled for modules that are not torch's own any more.
void replace_coarser(Plan& plan, LayerReplacer& replacer) {
    for (Site& site : plan.sites) {
        if (site.is_layer() && site.choice && !site.choice->precision().empty()) {
            replacer.replace(site);
        }
    }
}

}  // namespace

void replace_layers(const Job& job, Plan& plan, KernelCode& code, const Holders& holders) {
    const bool any_place = std::any_of(plan.sites.begin(), plan.sites.end(), [](const Site& site) {
        return !site.is_layer() && site.is_replaced();
    });
    LayerReplacer replacer(job, code);
    replace_coarser(plan, replacer);
    const auto levels = chosen_by_depth(plan);
    for (std::size_t depth = 0; depth < levels.size(); ++depth) {
        std::optional<CalledInstances> called;
        if (depth > 0 || any_place) {
            called.emplace(job.model);
        }
        for (Site* site : levels[depth]) {
            if (site->is_replaced() || !site->choice) {
                continue;  // a coarser one
            }
            const bool gone = called && !called->contains(site->instance.module);
            if (!gone || !holders.absorb(job, *site)) {
                replacer.replace(*site);
            }
        }
    }
}

}  // namespace twinkle::runtime
