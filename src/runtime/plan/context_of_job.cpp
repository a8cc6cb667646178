#include "runtime/plan/context_of_job.h"

#include "runtime/kernels/own_system.h"
#include "runtime/selection/context.h"
#include "runtime/selection/modes.h"

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

}  // namespace

void determine_context(Job& job, Report& report) {
    if (job.options.load_kernels) {
        require_own_system(job.mapping);
    }
    job.context.mode = mode_for(job.model, job.options.mode);
    job.context.device = device_for(job.model, job.options.device, report.warnings);
    const auto named =
        job.options.load_kernels ? named_capability(job.options.device) : std::nullopt;
    job.context.capability = named ? named : capability_of(job.mapping);
    job.context.precisions = {job.options.precisions.begin(), job.options.precisions.end()};
    report.mode = job.context.mode;
    report.device = job.context.device;
}

}  // namespace twinkle::runtime
