#include "runtime/plan/planned_model.h"

#include "runtime/convert/portability.h"
#include "runtime/graph/kernel_method.h"
#include "runtime/graph/past_runs.h"
#include "runtime/plan/apply_plan.h"
#include "runtime/plan/context_of_job.h"
#include "runtime/plan/replan.h"
#include "twinkle/error.h"

namespace twinkle::runtime {

namespace {

// Strict, except for excluded sites: their user wants them kept.
void refuse_kept(const Plan& plan) {
    for (const Site& site : plan.sites) {
        if (site.report.status == SiteStatus::kept && site.is_reported() && !site.left_out) {
            throw Error(ErrorCode::refused,
                        {.what = site.report.of + " was not replaced",
                         .where = site.report.site,
                         .why = site.report.because,
                         .hint = "leave out strict to keep its original, or exclude the site"});
        }
    }
}

PreparedWeights not_for_another_machine(const std::vector<Instance>& instances) {
    PreparedWeights none;
    for (const Instance& instance : instances) {
        none.failed[instance.path] =
            "its weights are prepared by the kernel, which is for another machine";
    }
    return none;
}

Report converted(const Job& job) {
    Report report;
    make_portable(job.model, job.options, report);
    return report;
}

}  // namespace

void add_sites(Report& report, const Plan& plan) {
    for (const Site& site : plan.sites) {
        if (site.is_reported()) {
            report.sites.push_back(report_of(site));
        }
    }
}

PlannedModel::PlannedModel(const Job& job)
    : job_(job), report_(converted(job)), code_(job_), stand_ins_(job_, code_) {
    determine_context(job_, report_);
    plan_ = make_plan(job_, stand_ins_);
    report_.warnings.insert(report_.warnings.end(), plan_.warnings.begin(), plan_.warnings.end());
}

PlannedModel::PlannedModel(const Job& job, const PlannedModel& other)
    : job_(job),
      report_(other.report_),
      code_(job_),
      stand_ins_(job_, code_),
      prepared_(other.prepared_) {
    converted(job);
    job_.context = other.job_.context;
    plan_ = plan_for_copy(job_, other.plan_);
}

// Gives instances the weights that their new layers make of the old ones.
void PlannedModel::prepare(const std::vector<Site>& sites) {
    const std::vector<Instance> instances = instances_to_prepare(job_.model);
    std::map<std::string, const void*> layers;  // by the path of the instance
    for (const Site& site : sites) {
        if (site.is_layer() && site.choice) {
            layers[site.instance.path] = site.choice->id();
        }
    }
    const auto key = [&](const Instance& instance) {
        const auto layer = layers.find(instance.path);
        return std::pair(instance.path, layer != layers.end() ? layer->second : nullptr);
    };
    std::vector<Instance> pending;
    for (const Instance& instance : instances) {
        if (!prepared_->contains(key(instance))) {
            pending.push_back(instance);
        }
    }
    if (!pending.empty()) {
        job_.observe("prepare", "in " + std::to_string(pending.size()) + " layers");
    }
    PreparedWeights now = !job_.options.load_kernels ? not_for_another_machine(pending)
                          : job_.options.kernels_in_children
                              ? prepare_in_child(pending, job_.options.prove_on)
                              : prepare_here(pending);
    for (const Instance& instance : pending) {
        if (const auto made = now.made.find(instance.path); made != now.made.end()) {
            prepared_->emplace(key(instance), std::move(made->second));
        }
    }
    unprepared_ = std::move(now.failed);
    for (const Instance& instance : instances) {
        if (const auto known = prepared_->find(key(instance)); known != prepared_->end()) {
            put_weights(instance, known->second);
        }
    }
    forget_preparation(instances);
}

Report PlannedModel::apply() {
    Plan applied{.sites = plan_.sites,
                 .uses = plan_.uses,
                 .rules = plan_.rules,
                 .may_train = plan_.may_train,
                 .places = std::move(plan_.places),
                 .warnings = {}};
    plan_.places.reset();
    apply_plan(job_, applied, code_, stand_ins_);
    prepare(applied.sites);
    Report report = report_;
    add_sites(report, applied);
    for (const Site& site : applied.sites) {
        if (site.failed && site.is_reported()) {
            failed_.insert(site.report.site);
        }
    }
    if (job_.options.strict) {
        refuse_kept(applied);
    }
    code_.record(applied, report);
    if (report.count(SiteStatus::replaced) != 0) {
        discard_past_runs(job_.model);
    }
    return report;
}

}  // namespace twinkle::runtime
