#include "runtime/verify/child_judge.h"

#include "base/json.h"
#include "runtime/graph/sites.h"
#include "runtime/trial/gpu_state.h"
#include "runtime/verify/call_recorder.h"
#include "runtime/verify/contestant.h"
#include "runtime/verify/double_reference.h"
#include "runtime/verify/judgement.h"
#include "runtime/verify/originals.h"
#include "runtime/verify/perturbed_originals.h"
#include "runtime/verify/rounded_results.h"
#include "runtime/verify/run_error.h"
#include "runtime/verify/side_by_side.h"
#include "runtime/verify/site_module.h"
#include "runtime/verify/site_reference.h"
#include "runtime/verify/sized_calls.h"
#include "runtime/verify/verdict.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

namespace twinkle::runtime {

namespace {

void limit_threads(const VerificationContext& context) {
    if (context.threads) {
        at::set_num_threads(*context.threads);
    }
}

// Whether there is time left, counted from the first time that it is asked.
std::function<bool()> stopwatch(std::optional<std::chrono::duration<double>> limit) {
    using Clock = std::chrono::steady_clock;
    const auto begun = std::make_shared<std::optional<Clock::time_point>>();
    return [limit, begun] {
        const bool first = !*begun;
        *begun = begun->value_or(Clock::now());
        return first || !limit || Clock::now() - **begun < *limit;
    };
}

std::function<void(const std::string&)> sender_of_sizes(const Send& send) {
    return [&send](const std::string& size) { send(base::json_line({{"size", size}})); };
}

// A result that is as far from the reference as zero has nothing in common with it.
constexpr double most_of_coarser = 1;

const std::string& site_called(const VerificationContext& context, const std::string& name) {
    const auto other = context.others.find(name);
    return other == context.others.end() ? name : other->second.site;
}

// Returns the sites that are judged, each once.
std::vector<std::string> sites_of(const VerificationContext& context,
                                  const std::vector<std::string>& names) {
    std::vector<std::string> sites;
    for (const std::string& name : names) {
        const std::string& site = site_called(context, name);
        if (std::find(sites.begin(), sites.end(), site) == sites.end()) {
            sites.push_back(site);
        }
    }
    return sites;
}

Verdict judge_converted(const VerificationContext& given) {
    Verdict verdict;
    verdict.calls = 1;
    try {
        const VerificationContext context = in_place(given);
        const torch::jit::Module converted = open_original(context);
        torch::jit::Module reference = open_exact(context);
        const c10::IValue result = run_seeded(converted, "forward", deep_copy(context.inputs));
        verdict.ran = true;
        const Yardstick rounded =
            rounded_yardstick(open_rounded(context), "forward", context.inputs, result);
        const c10::IValue exact =
            run_seeded(reference, "forward", with_dtype(context.inputs, at::kDouble));
        verdict.comparison = compare_beyond_luck(result, rounded, exact, Norm::euclidean, {});
        verdict.because = verdict.comparison.problem;
    } catch (const std::exception& error) {
        verdict.because = cannot_be_run(error.what());
    }
    verdict.right = verdict.because.empty();
    return verdict;
}

}  // namespace

std::function<void()> sign_of_life(const Send& send) {
    using Clock = std::chrono::steady_clock;
    return [&send, last = Clock::time_point{}]() mutable {
        if (const auto now = Clock::now(); now - last > std::chrono::milliseconds(100)) {
            last = now;
            send(base::json_line({{"alive", true}}));
        }
    };
}

void judge_sites(const VerificationContext& given, const torch::jit::Module& made,
                 const std::vector<std::string>& names, const Send& send) {
    const torch::NoGradGuard no_grad;
    limit_threads(given);
    const VerificationContext context = in_place(given);
    const std::vector<std::string> sites = sites_of(context, names);
    const torch::jit::Module kernelized = in_place(made, context);
    const torch::jit::Module recorded_model = open_original(context, sites);
    CallRecorder recorder(recorded_model, sites, inlined_sites(kernelized, recorded_model, sites));
    const auto recordings = record_calls(recorder, context, send);
    if (!recordings) {
        return;
    }
    const torch::jit::Module original = open_original(context, sites);
    const InlinedSites inlined = inlined_sites(kernelized, original, sites);
    const SiteReference reference(context, sites, kernelized, original);
    SideBySide times(context, recorder.weights(), send);
    for (const std::string& name : names) {
        send(base::json_line({{"begin", name}}));
        const auto other = context.others.find(name);
        const std::string& site = site_called(context, name);
        const auto replaced = other == context.others.end()
                                  ? module_at(kernelized, site)
                                  : std::optional(in_place(other->second.module, context));
        // A site without a module lies in what another site has replaced.
        const auto calls = replaced ? calls_of(site, *recordings) : std::vector<SizedCalls>(1);
        const bool coarser = context.coarser.contains(site);
        const Contest contest{replaced.value_or(kernelized),
                              site_of(original, inlined, site),
                              reference.of(site),
                              coarser ? Norm::euclidean : Norm::largest,
                              sign_of_life(send),
                              sender_of_sizes(send),
                              context,
                              std::nullopt,
                              coarser ? std::optional(most_of_coarser) : std::nullopt,
                              std::nullopt,
                              recorder.weights()};
        const auto sizes = context.by_size.find(name);
        const JudgedSizes judged = sizes != context.by_size.end()
                                       ? judge_by_size(contest, calls, sizes->second)
                                       : JudgedSizes{judge(contest, calls), {}};
        send(base::json_line({{"verdict", to_json(judged.verdict)}}));
        if (!judged.verdict.right && !still_works(context.device)) {
            return;  // the other sites are for another child
        }
        times.add(name, contest.original, contest.kernelized, judged.timed);
    }
    times.measure(stopwatch(context.measuring));
}

void judge_whole(const VerificationContext& given, const torch::jit::Module& made,
                 const Send& send) {
    const torch::NoGradGuard no_grad;
    limit_threads(given);
    const VerificationContext context = in_place(given);
    // Frozen where it is saved from, and moved then, as who loads it does.
    const torch::jit::Module kernelized =
        in_place(context.frozen ? frozen_for(made, context) : made, context);
    const torch::jit::Module original = open_original(context);
    const torch::jit::Module reference = open_exact(context);
    const auto measure = context.dtype ? std::optional(open_rounded(context)) : std::nullopt;
    std::vector<SizedCalls> calls = {{"", true, {{"forward", context.inputs}}}};
    for (const SizeVariant& variant : context.sizes) {
        const Inputs inputs = variant.of(context.inputs);
        calls.push_back({size_text(variant, inputs), variant.tuned, {{"forward", inputs}}});
    }
    send(base::json_line({{"begin", ""}}));
    send(base::json_line(
        {{"verdict", to_json(judge({kernelized, original, reference, Norm::euclidean,
                                    sign_of_life(send), sender_of_sizes(send), context, measure,
                                    context.max_error, context.agreement},
                                   calls))}}));
}

void judge_conversion(const VerificationContext& context, const Send& send) {
    const torch::NoGradGuard no_grad;
    limit_threads(context);
    send(base::json_line({{"begin", ""}}));
    send(base::json_line({{"verdict", to_json(judge_converted(context))}}));
}

}  // namespace twinkle::runtime
