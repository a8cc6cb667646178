#include "worker/whole_speed.h"

#include "runtime/graph/format.h"
#include "runtime/verify/model_times.h"
#include "target/machine.h"
#include "target/machine_load.h"
#include "worker/times_json.h"

namespace twinkle::worker {

using base::Json;
using runtime::ModelTimes;

namespace {

constexpr double most_load = 2;  // a core: a run would take long, and say nothing

Json not_measured(const std::string& why) {
    return {{"runs", 0},          {"threads", nullptr},       {"original_us", nullptr},
            {"speedup", nullptr}, {"kernelized_us", nullptr}, {"not_measured", why}};
}

Json measured(const ModelTimes& times, bool busy) {
    const auto& original = times.named("original").us;
    const auto& kernelized = times.named("kernelized").us;
    return {{"runs", kernelized.size()},
            {"threads", times.threads},
            {"busy", busy},
            {"original_us", times_json(original)},
            {"kernelized_us", times_json(kernelized)},
            {"speedup", speedup_json(kernelized, original)},
            {"not_measured", nullptr}};
}

}  // namespace

Json whole_speed(const Request& request, const Channel& channel, const Kernelizing& kernelizing,
                 Kernelized& made, runtime::VerificationContext context, double load_before) {
    if (made.report.count(SiteStatus::replaced) == 0 && !request.dtype) {
        return not_measured("nothing was replaced");
    }
    if (made.report.device != "cpu" && !kernelizing.gpu()) {
        return not_measured("this machine cannot use the device " + made.report.device);
    }
    const int cores = target::this_machine().cpu().cores;
    if (load_before > most_load * cores) {
        return not_measured(
            fmt::format("other programs keep this machine busy (load {:.0f} on {} "
                        "core{}); twinkle bench measures it when it is quiet",
                        load_before, cores, cores == 1 ? "" : "s"));
    }
    channel.stage("measure", "how much faster it is");
    context.steps = context.gradients;
    context.sampling = runtime::Sampling::brief(runtime::fewest_turns);
    context.sampling->warm_up = 1;
    try {
        const auto times = runtime::measure_models(
            context, made.model, runtime::Contest::as_they_are, [](const std::string&) {});
        return measured(times, target::is_busy(load_before));
    } catch (const Error& error) {
        if (request.strict) {
            throw;
        }
        const auto& said = error.details();
        made.report.warnings.push_back(said.what + ": " + said.why);
        return not_measured(said.what + ": " + said.why);
    }
}

}  // namespace twinkle::worker
