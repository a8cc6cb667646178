#include "runtime/verify/verification.h"

#include "base/file.h"
#include "runtime/trial/sandbox.h"
#include "runtime/verify/child_judge.h"
#include "runtime/verify/verdict_collector.h"
#include "twinkle/error.h"

#include <algorithm>

namespace twinkle::runtime {

namespace {

// For a child that has died, or that foreign code has ended as if its work were done.
Verdict without_verdict(const SandboxOutcome& outcome, const std::string& where) {
    Verdict verdict;
    verdict.because = where + (outcome.finished ? "it ended without a verdict" : outcome.why);
    return verdict;
}

}  // namespace

void inputs_do_not_fit(const VerificationContext& context, const std::string& why) {
    throw Error(ErrorCode::malformed,
                {.what = "the original model cannot be run on these inputs",
                 .where = base::display_path(context.original),
                 .why = why,
                 .hint = "give inputs as the model's forward takes them (--inputs)"});
}

SitesVerified verify_sites(const VerificationContext& given, const torch::jit::Module& kernelized,
                           const std::vector<std::string>& sites) {
    VerificationContext context = given;
    std::map<std::string, Verdict> verdicts;
    std::vector<std::string> pending = sites;
    while (!pending.empty()) {
        VerdictCollector collector;
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
        if (collector.sizes.drop_crashed(context.sizes)) {
            continue;
        }
        if (collector.sizes.fatal ||
            (!outcome.finished && !collector.current && collector.timing.empty())) {
            inputs_do_not_fit(context, collector.sizes.fatal.value_or(outcome.why));
        }
        const bool again = !outcome.finished && collector.blame(context, outcome.why);
        const bool cut_short = std::any_of(pending.begin(), pending.end(), [&](const auto& name) {
            return !collector.verdicts.contains(name);
        });
        if (outcome.finished && cut_short && collector.has_wrong()) {  // that broke the GPU
            collector.drop_unmeasured(context);
        }
        context.sizes = sizes_chosen(context.sizes, collector.sizes.accepted);
        std::erase_if(
            collector.verdicts, [&](const auto& one) {  // drops sites that were not pending
                return std::find(pending.begin(), pending.end(), one.first) == pending.end();
            });
        // Foreign code may have ended the child as if it were ours.
        if (collector.verdicts.empty() && !again) {
            inputs_do_not_fit(context, "the child process that ran it ended without a verdict");
        }
        std::erase_if(pending,
                      [&](const std::string& site) { return collector.verdicts.contains(site); });
        verdicts.merge(collector.verdicts);
    }
    return {std::move(verdicts), std::move(context.sizes)};
}

Verdict verify_whole(const VerificationContext& context, const torch::jit::Module& kernelized) {
    VerdictCollector collector;
    const SandboxOutcome outcome = run_in_sandbox(
        context.limits, [&](const Send& send) { judge_whole(context, kernelized, send); },
        [&](std::string_view line) { collector.take(line); });
    if (collector.verdicts.contains("")) {
        return collector.verdicts[""];
    }
    return without_verdict(outcome, at_size(collector.size));
}

Verdict verify_conversion(const VerificationContext& context) {
    VerdictCollector collector;
    const SandboxOutcome outcome = run_in_sandbox(
        context.limits, [&](const Send& send) { judge_conversion(context, send); },
        [&](std::string_view line) { collector.take(line); });
    if (collector.verdicts.contains("")) {
        return collector.verdicts[""];
    }
    return without_verdict(outcome, "");
}

}  // namespace twinkle::runtime
