#include "runtime/verify/verification.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "runtime/rewrite/sites.h"
#include "runtime/verify/call_recorder.h"
#include "runtime/verify/contestant.h"
#include "runtime/verify/double_reference.h"
#include "runtime/verify/gpu_state.h"
#include "runtime/verify/gradients.h"
#include "runtime/verify/originals.h"
#include "runtime/verify/rounded_results.h"
#include "runtime/verify/run_error.h"
#include "runtime/verify/site_module.h"
#include "twinkle/error.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <set>

namespace twinkle::runtime {

namespace {

using base::Json;
using Send = std::function<void(std::string_view)>;

constexpr std::size_t calls_per_site = 4;

Json to_json(const Verdict& verdict) {
    return {{"right", verdict.right},
            {"because", verdict.because},
            {"reached", verdict.reached},
            {"ran", verdict.ran},
            // Infinity is no JSON number.
            {"error", std::min(verdict.comparison.error, 1e300)},
            {"original", std::min(verdict.comparison.original_error, 1e300)},
            {"allowed", std::min(verdict.comparison.allowed, 1e300)},
            {"calls", verdict.calls},
            {"times", verdict.times}};
}

Verdict from_json(const Json& json) {
    Verdict verdict;
    verdict.right = json.at("right").get<bool>();
    verdict.because = json.at("because").get<std::string>();
    verdict.reached = json.at("reached").get<bool>();
    verdict.ran = json.at("ran").get<bool>();
    verdict.comparison.error = json.at("error").get<double>();
    verdict.comparison.original_error = json.at("original").get<double>();
    verdict.comparison.allowed = json.at("allowed").get<double>();
    verdict.calls = json.at("calls").get<std::size_t>();
    verdict.times = json.at("times").get<Samples>();
    return verdict;
}

bool unchanged(const Inputs& before, const Inputs& after) {
    for (std::size_t i = 0; i < before.positional.size(); ++i) {
        const c10::IValue& one = before.positional[i];
        if (one.isTensor() && one.toTensor().defined() &&
            !one.toTensor().equal(after.positional[i].toTensor()) &&
            !one.toTensor().isnan().any().item<bool>()) {
            return false;
        }
    }
    return true;
}

// What is compared: the same work by the kernelized and the original module, and by its double.
struct Contest {
    torch::jit::Module kernelized;
    torch::jit::Module original;
    torch::jit::Module reference;  // computes in double, with its weights in double
    Norm norm = Norm::largest;
    std::function<void()> alive;  // told between steps that take long
    const VerificationContext& context;
    // Of a converted model as a whole, instead of the original: its luck is not to be that of
    // another that is right.
    std::optional<torch::jit::Module> measure = std::nullopt;
};

void judge_call(const Contest& contest, const std::string& method, const Inputs& inputs,
                Verdict& verdict) {
    Inputs for_original = deep_copy(inputs);
    Inputs for_kernel = deep_copy(inputs);
    const c10::IValue original = run_seeded(contest.original, method, for_original);
    const c10::IValue reference =
        run_seeded(contest.reference, method, with_dtype(inputs, at::kDouble));
    verdict.ran = false;
    const c10::IValue result = run_seeded(contest.kernelized, method, for_kernel);
    verdict.ran = true;
    const Comparison one = compare(
        result, contest.measure ? run_rounded(*contest.measure, method, inputs, result) : original,
        reference, contest.norm);
    if (verdict.comparison.allowed == 0 || !one.problem.empty() ||
        one.error * verdict.comparison.allowed > verdict.comparison.error * one.allowed) {
        verdict.comparison = one;
    }
    if (!one.problem.empty()) {
        verdict.right = false;
        verdict.because = one.problem;
    } else if (unchanged(inputs, for_original) && !unchanged(inputs, for_kernel)) {
        verdict.right = false;
        verdict.because = "it writes into its inputs, which the original does not";
    }
}

// A gradient that the original cannot give is none that a kernel could get wrong.
void judge_gradients(const Contest& contest, const std::string& method, const Inputs& inputs,
                     Verdict& verdict) {
    // One run each: what TorchScript's optimizer would prepare for further ones takes longer.
    const torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
    Gradients original;
    Gradients reference;
    try {
        contest.alive();
        original = gradients_of(contest.original, method, inputs);
        contest.alive();
        reference = gradients_of(contest.reference, method, with_dtype(inputs, at::kDouble));
    } catch (const std::exception& error) {
        verdict.because =
            "gradients were not compared, as the original gives none: " + run_error(error.what());
        return;
    }
    try {
        const auto problem =
            wrong_gradient(gradients_of(contest.kernelized, method, inputs), original, reference);
        verdict.right = problem.empty();
        verdict.because = problem;
    } catch (const std::exception& error) {
        verdict.right = false;
        verdict.because = "it cannot be trained: " + run_error(error.what());
    }
}

Verdict judge(const Contest& contest, const Calls& calls) {
    const bool training = contest.context.gradients;
    Verdict verdict;
    verdict.right = true;
    verdict.calls = calls.size();
    verdict.reached = !calls.empty();
    try {
        for (const auto& [method, inputs] : calls) {
            judge_call(contest, method, inputs, verdict);
            if (!verdict.right) {
                return verdict;
            }
        }
        std::set<std::string> differentiated;
        for (const auto& [method, inputs] : calls) {
            if (training && differentiated.insert(method).second) {
                judge_gradients(contest, method, inputs, verdict);
                if (!verdict.right) {
                    return verdict;
                }
            }
        }
        if (!calls.empty() && contest.context.sampling) {
            share_parameters(contest.original, contest.kernelized);
            const bool steps = contest.context.steps;
            verdict.times = time_in_turns({contestant(contest.original, calls, steps),
                                           contestant(contest.kernelized, calls, steps)},
                                          *contest.context.sampling, contest.alive);
        }
    } catch (const std::exception& error) {
        verdict.right = false;
        verdict.because = "it cannot be run: " + run_error(error.what());
    }
    return verdict;
}

void limit_threads(const VerificationContext& context) {
    if (context.threads) {
        at::set_num_threads(*context.threads);
    }
}

// In the child. Sends {"fatal"} or, for sites until one breaks the GPU, {"begin"} and {"verdict"}.
void judge_sites(const VerificationContext& given, const torch::jit::Module& made,
                 const std::vector<std::string>& sites, const Send& send) {
    const torch::NoGradGuard no_grad;
    limit_threads(given);
    const VerificationContext context = in_place(given);
    const torch::jit::Module kernelized = in_place(made, context);
    torch::jit::Module recorder = open_original(context, sites);
    std::map<std::string, std::vector<RecordedCall>> recorded;
    try {
        const auto run = [&](torch::jit::Module& model) {
            run_seeded(model, "forward", deep_copy(context.inputs));
        };
        recorded = record_calls(recorder, sites, calls_per_site, run,
                                inlined_sites(kernelized, recorder, sites));
    } catch (const std::exception& error) {
        send(Json{{"fatal", run_error(error.what())}}.dump());
        return;
    }
    const torch::jit::Module original = open_original(context, sites);
    torch::jit::Module reference = open_reference(context, sites);
    const InlinedSites inlined = inlined_sites(kernelized, original, sites);
    const InlinedSites inlined_reference = inlined_sites(kernelized, reference, sites);
    compute_in_double(reference);
    for (const std::string& site : sites) {
        send(Json{{"begin", site}}.dump());
        Calls calls;
        for (const RecordedCall& call : recorded[site]) {
            calls.push_back({call.method, Inputs{call.inputs, {}}});
        }
        const auto replaced = module_at(kernelized, site);
        if (!replaced) {
            calls.clear();  // it stands in what another site has replaced
        }
        const Contest contest{replaced.value_or(kernelized),
                              site_of(original, inlined, site),
                              in_double(site_of(reference, inlined_reference, site)),
                              Norm::largest,
                              sign_of_life(send),
                              context};
        const Verdict verdict = judge(contest, calls);
        send(Json{{"verdict", to_json(verdict)}}.dump());
        if (!verdict.right && !still_works(context.device)) {
            return;  // the other sites are for another child
        }
    }
}

void judge_whole(const VerificationContext& given, const torch::jit::Module& made,
                 const Send& send) {
    const torch::NoGradGuard no_grad;
    limit_threads(given);
    const VerificationContext context = in_place(given);
    const torch::jit::Module kernelized = in_place(made, context);
    const torch::jit::Module original = open_original(context);
    const torch::jit::Module reference = open_exact(context);
    const auto measure = context.dtype ? std::optional(open_rounded(context)) : std::nullopt;
    send(Json{{"begin", ""}}.dump());
    send(Json{{"verdict", to_json(judge({kernelized, original, reference, Norm::euclidean,
                                         sign_of_life(send), context, measure},
                                        {{"forward", context.inputs}}))}}
             .dump());
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
        const c10::IValue expected =
            run_rounded(open_rounded(context), "forward", context.inputs, result);
        const c10::IValue exact =
            run_seeded(reference, "forward", with_dtype(context.inputs, at::kDouble));
        verdict.comparison = compare(result, expected, exact, Norm::euclidean);
        verdict.because = verdict.comparison.problem;
    } catch (const std::exception& error) {
        verdict.because = "it cannot be run: " + run_error(error.what());
    }
    verdict.right = verdict.because.empty();
    return verdict;
}

// Collects what a child sends; remembers which site was under way when it died.
struct Collector {
    std::map<std::string, Verdict> verdicts;
    std::optional<std::string> current;
    std::optional<std::string> fatal;

    void take(std::string_view line) {
        const Json json = base::parse_json(line, "verification");
        if (json.contains("fatal")) {
            fatal = json["fatal"].get<std::string>();
        } else if (json.contains("begin")) {
            current = json["begin"].get<std::string>();
        } else if (json.contains("verdict") && current) {
            verdicts[*current] = from_json(json["verdict"]);
            current.reset();
        }
    }
};

}  // namespace

std::function<void()> sign_of_life(const Send& send) {
    using Clock = std::chrono::steady_clock;
    return [&send, last = Clock::time_point{}]() mutable {
        if (const auto now = Clock::now(); now - last > std::chrono::milliseconds(100)) {
            last = now;
            send(Json{{"alive", true}}.dump());
        }
    };
}

void inputs_do_not_fit(const VerificationContext& context, const std::string& why) {
    throw Error(ErrorCode::malformed,
                {.what = "the original model cannot be run on these inputs",
                 .where = base::display_path(context.original),
                 .why = why,
                 .hint = "give inputs as the model's forward takes them (--inputs)"});
}

std::map<std::string, Verdict> verify_sites(const VerificationContext& context,
                                            const torch::jit::Module& kernelized,
                                            const std::vector<std::string>& sites) {
    std::map<std::string, Verdict> verdicts;
    std::vector<std::string> pending = sites;
    while (!pending.empty()) {
        Collector collector;
        const SandboxOutcome outcome = run_in_sandbox(
            context.limits,
            [&](const Send& send) { judge_sites(context, kernelized, pending, send); },
            [&](std::string_view line) {
                collector.take(line);
                if (collector.current && context.observer) {
                    context.observer(verdicts.size() + collector.verdicts.size(), sites.size(),
                                     *collector.current);
                }
            });
        if (collector.fatal || (!outcome.finished && !collector.current)) {
            inputs_do_not_fit(context, collector.fatal.value_or(outcome.why));
        }
        if (!outcome.finished) {
            Verdict& died = collector.verdicts[*collector.current];
            died.because = outcome.why;
        }
        std::erase_if(pending,
                      [&](const std::string& site) { return collector.verdicts.contains(site); });
        verdicts.merge(collector.verdicts);
    }
    return verdicts;
}

Verdict verify_whole(const VerificationContext& context, const torch::jit::Module& kernelized) {
    Collector collector;
    const SandboxOutcome outcome = run_in_sandbox(
        context.limits, [&](const Send& send) { judge_whole(context, kernelized, send); },
        [&](std::string_view line) { collector.take(line); });
    if (collector.verdicts.contains("")) {
        return collector.verdicts[""];
    }
    Verdict verdict;
    verdict.because = outcome.why;
    return verdict;
}

Verdict verify_conversion(const VerificationContext& context) {
    Collector collector;
    const SandboxOutcome outcome = run_in_sandbox(
        context.limits,
        [&](const Send& send) {
            const torch::NoGradGuard no_grad;
            limit_threads(context);
            send(Json{{"begin", ""}}.dump());
            send(Json{{"verdict", to_json(judge_converted(context))}}.dump());
        },
        [&](std::string_view line) { collector.take(line); });
    if (collector.verdicts.contains("")) {
        return collector.verdicts[""];
    }
    Verdict verdict;
    verdict.because = outcome.why;
    return verdict;
}

void enter(const Verdict& verdict, SiteReport& site) {
    if (!verdict.reached) {
        site.because += "; not reached by these inputs, so not verified";
        return;
    }
    if (verdict.comparison.allowed > 0) {
        site.max_error = verdict.comparison.error;
        site.original_error = verdict.comparison.original_error;
        site.allowed_error = verdict.comparison.allowed;
    }
    if (verdict.times.size() == 2 && !verdict.times[0].empty() && !verdict.times[1].empty()) {
        site.time_before_us = spread_of(verdict.times[0]).median;
        site.time_after_us = spread_of(verdict.times[1]).median;
    }
    if (!verdict.right) {
        site.status = SiteStatus::reverted;
        site.because = verdict.because;
    } else if (!verdict.because.empty()) {
        site.because += "; " + verdict.because;
    }
}

}  // namespace twinkle::runtime
