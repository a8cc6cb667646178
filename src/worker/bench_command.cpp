#include "base/file.h"
#include "base/text.h"
#include "runtime/verify/model_times.h"
#include "target/machine.h"
#include "target/machine_load.h"
#include "worker/commands.h"
#include "worker/kernelizing.h"
#include "worker/times_json.h"

#include <torch/version.h>

#include <algorithm>

namespace twinkle::worker {

namespace {

using base::Json;
using runtime::ModelTimes;

Json number_or_null(double value, bool known) {
    return known ? Json(value) : Json();
}

Json model_json(const ModelTimes::Contestant& one) {
    const bool compared = one.comparison.allowed > 0;
    return {{"name", one.name},
            {"max_error", number_or_null(one.comparison.error, compared)},
            {"allowed_error", number_or_null(one.comparison.allowed, compared)},
            {"right", one.absent.empty() ? Json(one.comparison.problem.empty()) : Json()},
            {"because", one.absent.empty() ? one.comparison.problem : one.absent},
            {"runs", one.us.size()},
            {"time_us", times_json(one.us)}};
}

// The ratios that matter to somebody who serves the model.
Json speedups_of(const ModelTimes& times) {
    static constexpr const char* pairs[][2] = {{"kernelized", "original"},
                                               {"frozen kernelized", "frozen original"},
                                               {"frozen original", "original"},
                                               {"frozen kernelized", "original"}};
    Json list = Json::array();
    for (const auto& [of, over] : pairs) {
        Json speedup = speedup_json(times.named(of).us, times.named(over).us);
        if (!speedup.is_null()) {
            speedup.update({{"of", of}, {"over", over}});
            list.push_back(std::move(speedup));
        }
    }
    return list;
}

Json gpu_json(const Kernelizing& kernelizing) {
    const auto device = kernelizing.gpu();
    if (!device) {
        return {};
    }
    const auto driver = target::this_machine().cuda_driver();
    const target::Gpu& gpu =
        driver->gpus.at(device->has_index() ? static_cast<std::size_t>(device->index()) : 0);
    return {{"name", gpu.name}, {"arch", gpu.arch}, {"driver_cuda", driver->version.text()}};
}

Json machine_json(const ModelTimes& times, double load_before, const Kernelizing& kernelizing) {
    const auto cpu = target::this_machine().cpu();
    return {{"cpu", cpu.model},
            {"arch", cpu.arch},
            {"cores", cpu.cores},
            {"load_before", load_before},
            {"threads", times.threads},
            {"torch", TORCH_VERSION},
            {"torch_capability", times.cpu_capability},
            {"gpu", gpu_json(kernelizing)}};
}

void require_device(const Request& request, const Kernelizing& kernelizing) {
    if (request.device && *request.device != "cpu" && !kernelizing.gpu()) {
        throw Error(ErrorCode::refused,
                    {.what = "the model cannot be measured on " + base::printable(*request.device),
                     .where = base::display_path(request.model),
                     .why = std::string("LibTorch ") + TORCH_VERSION +
                            " sees no such device here, or was built without it",
                     .hint = "leave out --device to measure on the CPU"});
    }
}

runtime::Sampling sampling_for(const Request& request, double seconds) {
    return {.warm_up = request.warm_up,
            .runs = request.runs.value_or(0),
            .least_runs = runtime::fewest_turns,
            .budget_ms = seconds * 1000};
}

ModelTimes measure(const Request& request, const Channel& channel, const Kernelized& made,
                   runtime::VerificationContext context, double seconds) {
    context.sampling = sampling_for(request, seconds);
    return runtime::measure_models(
        context, made.model, runtime::Contest::all, [&](const std::string& doing) {
            channel.stage("measure",
                          doing.empty() ? "the models in turns" : "the " + doing + " model");
        });
}

}  // namespace

Json bench_command(const Request& request, const Channel& channel) {
    const double load_before = target::load_of_others();
    Kernelizing kernelizing(request, channel);
    require_device(request, kernelizing);
    Kernelized made = kernelizing.kernelize();
    const std::size_t sites = made.report.count(SiteStatus::replaced);
    const double seconds = request.duration.value_or(10);
    const double for_model = sites == 0 ? seconds : seconds / 2;  // the rest is for its sites

    auto context = kernelizing.verification(made.report);
    context.steps = context.gradients;
    context.threads = request.threads;
    context.sampling = sampling_for(
        request, (seconds - for_model) / static_cast<double>(std::max<std::size_t>(sites, 1)));
    const auto verdicts = kernelizing.verify_sites(made, context);
    context.sampling.reset();
    kernelizing.verify_whole(made, context);
    const ModelTimes times = measure(request, channel, made, context, for_model);

    if (target::is_busy(load_before)) {
        made.report.warnings.emplace_back(
            "other programs keep this machine busy: differences may be luck, or hidden");
    }
    const auto unconfined = runtime::unconfined_so_far();
    made.report.warnings.insert(made.report.warnings.end(), unconfined.begin(), unconfined.end());
    Json result = base::parse_json(made.report.to_json(), "report");
    result.erase("schema");
    result.update(verified_on(context));
    for (Json& site : result["sites"]) {
        add_times(site, verdicts);
    }
    result["models"] = Json::array();
    for (const auto& one : times.contestants) {
        result["models"].push_back(model_json(one));
    }
    result["speedups"] = speedups_of(times);
    result["machine"] = machine_json(times, load_before, kernelizing);
    result["step"] = context.steps ? "forward and backward" : "forward";
    return result;
}

}  // namespace twinkle::worker
