#include "worker/freezing.h"

#include "base/file.h"
#include "runtime/convert/frozen_model.h"
#include "runtime/graph/format.h"
#include "runtime/verify/model_times.h"
#include "runtime/verify/run_error.h"
#include "twinkle/error.h"
#include "worker/save_from_child.h"
#include "worker/times_json.h"

namespace twinkle::worker {

using base::Json;
using runtime::Speedup;
using runtime::Verdict;
using runtime::VerificationContext;

namespace {

// Judges the frozen model; not right: it cannot be frozen, or its values are others.
Verdict judge_frozen(const torch::jit::Module& model, VerificationContext context) {
    Verdict verdict;
    if (context.gradients) {
        verdict.because = "a model in training cannot be frozen";
        return verdict;
    }
    context.frozen = true;
    try {
        return runtime::verify_whole(context, model);
    } catch (const Error& error) {
        verdict.because = error.details().why;
    }
    return verdict;
}

// Returns by size, in the order of the sizes, the given inputs and those that are tuned.
std::vector<std::pair<std::string, runtime::Inputs>> measured_sizes(
    const VerificationContext& context) {
    std::vector<std::pair<std::string, runtime::Inputs>> all = {{"given", context.inputs}};
    for (const runtime::SizeVariant& size : context.sizes) {
        if (size.tuned) {
            all.emplace_back(size.name(), size.of(context.inputs));
        }
    }
    return all;
}

struct Measured {
    Json sizes = Json::array();
    bool faster = false;  // in some size
    std::string slower;   // in which
};

Measured measure(const torch::jit::Module& model, VerificationContext context) {
    Measured measured;
    context.sampling = runtime::Sampling::brief(runtime::enough_turns);
    for (auto& [size, inputs] : measured_sizes(context)) {
        context.inputs = std::move(inputs);
        const auto times = runtime::measure_models(context, model, runtime::Contest::frozen,
                                                   [](const std::string&) {});
        const auto& plain = times.named("kernelized").us;
        const auto& frozen = times.named("frozen kernelized").us;
        const Speedup speedup = runtime::speedup_of(frozen, plain);
        measured.faster = measured.faster || speedup.verdict == Speedup::Verdict::faster;
        if (speedup.verdict == Speedup::Verdict::slower && measured.slower.empty()) {
            measured.slower = size;
        }
        measured.sizes.push_back({{"size", size},
                                  {"kernelized_us", times_json(plain)},
                                  {"frozen_us", times_json(frozen)},
                                  {"speedup", speedup_json(frozen, plain)}});
    }
    return measured;
}

Freezing by_speed(const Kernelizing& kernelizing, const Kernelized& made,
                  const VerificationContext& context) {
    if (made.report.device != "cpu" && !kernelizing.gpu()) {
        return {false, "this machine cannot use the device " + made.report.device};
    }
    try {
        const Measured measured = measure(made.model, context);
        if (!measured.slower.empty()) {
            return {false, "frozen it is slower in the size " + measured.slower, measured.sizes};
        }
        return {measured.faster, measured.faster ? "frozen it is faster" : "frozen it is no faster",
                measured.sizes};
    } catch (const Error& error) {
        return {false, error.details().what + ": " + error.details().why};
    }
}

Error not_frozen(const Request& request, const std::string& why) {
    return Error(ErrorCode::refused, {.what = "the kernelized model cannot be frozen",
                                      .where = base::display_path(request.model),
                                      .why = why,
                                      .hint = "nothing was written; leave out --freeze"});
}

}  // namespace

Json Freezing::json() const {
    return {{"chosen", chosen}, {"because", because}, {"sizes", sizes}};
}

Freezing decide_freezing(const Kernelizing& kernelizing, Kernelized& made,
                         const VerificationContext& context, const Request& request,
                         const Channel& channel) {
    channel.stage("freeze", "the whole model");
    const Verdict verdict = judge_frozen(made.model, context);
    if (!verdict.right) {
        if (!request.tune) {
            throw not_frozen(request, verdict.because);
        }
        return {false, verdict.because};
    }
    Freezing freezing = request.tune ? by_speed(kernelizing, made, context) : Freezing();
    if (freezing.chosen) {
        runtime::enter(verdict, made.report.whole);
    }
    return freezing;
}

void save_frozen(const Kernelized& made, const Request& request) {
    auto limits = runtime::SandboxLimits::for_bytes(std::filesystem::file_size(request.model));
    limits.total = 2 * limits.silence;
    limits.opens_kernels = false;
    limits.confinement.readable = {request.model};
    limits.confinement.none = request.allow_io;
    const auto failed = [&](const std::string& why) { return not_frozen(request, why); };
    save_from_child(
        *request.output, std::move(limits),
        [&] {
            try {
                return runtime::frozen_model(made.model, torch::Device(made.report.device));
            } catch (const std::exception& error) {
                throw failed(runtime::run_error(error.what()));
            }
        },
        failed);
}

}  // namespace twinkle::worker
