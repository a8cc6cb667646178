#include "runtime/plan/run.h"

#include "runtime/model/model_lock.h"
#include "runtime/plan/apply_plan.h"
#include "runtime/plan/context_of_job.h"
#include "runtime/plan/planned_model.h"
#include "twinkle/error.h"

namespace twinkle::runtime {

Report run(const Job& job) {
    const ModelLock lock(job.model);
    PlannedModel planned(job);
    Report report = planned.apply();
    if (!planned.unprepared().empty()) {
        const auto& [site, why] = *planned.unprepared().begin();
        throw Error(ErrorCode::refused, {.what = "a layer cannot take its place",
                                         .where = site,
                                         .why = why,
                                         .hint = "exclude the site"});
    }
    return report;
}

Report report_of_applying(Job job) {
    Report report;
    determine_context(job, report);
    KernelCode code(job);
    StandIns stand_ins(job, code);
    Plan plan = make_plan(job, stand_ins);
    apply_plan(job, plan, code, stand_ins);
    report.warnings.insert(report.warnings.end(), plan.warnings.begin(), plan.warnings.end());
    add_sites(report, plan);
    return report;
}

void report_nothing_replaced(Report& report, const Mapping& mapping) {
    if (report.count(SiteStatus::replaced) != 0) {
        return;
    }
    const bool rewritten = report.device_constants.rewritten + report.dtype_constants.rewritten +
                               report.dtype_constants.converted >
                           0;
    if (!rewritten) {
        report.warnings.emplace_back("nothing was replaced: the model computes as before");
    } else if (!mapping.layers.empty() || !mapping.functions.empty() ||
               !mapping.patterns.empty()) {  // else it was to be converted, no more
        report.warnings.emplace_back(
            "nothing was replaced: only the model's device or dtype is another");
    }
}

}  // namespace twinkle::runtime
