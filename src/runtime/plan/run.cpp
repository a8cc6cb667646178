#include "runtime/plan/run.h"

#include "runtime/convert/portability.h"
#include "runtime/graph/past_runs.h"
#include "runtime/kernels/own_system.h"
#include "runtime/model/model_lock.h"
#include "runtime/plan/apply_plan.h"
#include "runtime/plan/used_kernels.h"
#include "runtime/selection/context.h"
#include "runtime/selection/modes.h"
#include "twinkle/error.h"

#include <cstdio>

namespace twinkle::runtime {

namespace {

std::optional<int> capability_of(const Mapping& mapping) {
    const auto arch = mapping.target.find("arch");
    int major = 0;
    int minor = 0;
    if (arch == mapping.target.end() ||
        std::sscanf(arch->second.c_str(), "%d.%d", &major, &minor) != 2) {
        return std::nullopt;
    }
    return major * 10 + minor;
}

void determine_context(Job& job, Report& report) {
    if (job.options.load_kernels) {
        require_own_system(job.mapping);
    }
    job.context.mode = mode_for(job.model, job.options.mode);
    job.context.device = device_for(job.model, job.options.device, report.warnings);
    const auto named =
        job.options.load_kernels ? named_capability(job.options.device) : std::nullopt;
    job.context.capability = named ? named : capability_of(job.mapping);
    report.mode = job.context.mode;
    report.device = job.context.device;
}

void add_to(Report& report, const Plan& plan) {
    report.warnings.insert(report.warnings.end(), plan.warnings.begin(), plan.warnings.end());
    for (const Site& site : plan.sites) {
        if (!site.absorbed) {
            report.sites.push_back(site.report);
        }
    }
}

// A plan that is made and applied, with the code that it needs.
struct Replacing {
    const Job& job;
    KernelCode code;
    StandIns stand_ins;
    Plan plan;

    Replacing(Job& asked, Report& report) : job(asked), code(asked), stand_ins(asked, code) {
        determine_context(asked, report);
    }

    void run(Report& report) {
        plan = make_plan(job, stand_ins);
        apply_plan(job, plan, code, stand_ins);
        add_to(report, plan);
    }
};

// Strict: whoever excludes a site wants it kept.
void refuse_kept(const Plan& plan) {
    for (const Site& site : plan.sites) {
        if (site.report.status == SiteStatus::kept && !site.absorbed && !site.left_out) {
            throw Error(ErrorCode::refused,
                        {.what = site.report.of + " was not replaced",
                         .where = site.report.site,
                         .why = site.report.because,
                         .hint = "leave out strict to keep its original, or exclude the site"});
        }
    }
}

}  // namespace

Report run(Job job) {
    const ModelLock lock(job.model);
    Report report;
    make_portable(job.model, job.options, report);
    Replacing replacing(job, report);
    replacing.run(report);
    if (job.options.strict) {
        refuse_kept(replacing.plan);
    }
    mark_used_kernels(job, replacing.plan, replacing.code, report);
    if (report.count(SiteStatus::replaced) != 0) {
        discard_past_runs(job.model);
    }
    return report;
}

Report examine(Job job) {
    Report report;
    Replacing(job, report).run(report);
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
