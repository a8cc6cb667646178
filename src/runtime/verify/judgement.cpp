#include "runtime/verify/judgement.h"

#include "runtime/verify/contest_times.h"
#include "runtime/verify/gradients.h"
#include "runtime/verify/perturbed_originals.h"
#include "runtime/verify/reduction_length.h"
#include "runtime/verify/rounded_results.h"
#include "runtime/verify/run_error.h"

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <utility>

namespace twinkle::runtime {

namespace {

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

// The original's result of a call, and the result in double.
struct Expected {
    Inputs inputs_after;
    c10::IValue result, reference;
    std::int64_t summed = 1;   // terms of its longest sum
    std::string no_reference;  // that `reference` is the original's own result; empty: it is not
};

Expected expect(const Contest& contest, const std::string& method, const Inputs& inputs) {
    Expected expected;
    expected.inputs_after = deep_copy(inputs);
    const std::int64_t summed = longest_reduction(
        [&] { expected.result = run_seeded(contest.original, method, expected.inputs_after); });
    try {
        expected.summed = longest_reduction([&] {
            expected.reference =
                run_seeded(contest.reference, method, with_dtype(inputs, at::kDouble));
        });
    } catch (const std::exception& error) {  // quantized models take float32 alone
        expected.reference = expected.result;
        expected.summed = summed;
        expected.no_reference =
            "compared with the original's own values, as it cannot be run in double precision: " +
            run_error(error.what());
    }
    return expected;
}

// In another size the original may run and still compute nothing that makes sense: then there is
// nothing to compare with.
std::optional<Expected> expect_sense(const Contest& contest, const std::string& method,
                                     const Inputs& inputs) {
    try {
        Expected expected = expect(contest, method, inputs);
        const auto own =
            compare(expected.result, expected.result, expected.reference, contest.norm);
        return own.problem.empty() ? std::optional(std::move(expected)) : std::nullopt;
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

class Judge {
public:
    explicit Judge(const Contest& contest) : contest_(contest) {}

    void sized(const SizedCalls& one) {
        contest_.size(one.size);
        const torch::jit::GraphOptimizerEnabledGuard optimized(
            one.size.empty() && torch::jit::getGraphExecutorOptimize());
        for (const auto& [method, inputs] : one.calls) {
            const auto expected = one.size.empty() ? std::optional(expect(contest_, method, inputs))
                                                   : expect_sense(contest_, method, inputs);
            if (expected) {
                call(method, inputs, *expected, one.size.empty());
            }
            if (expected && !expected->no_reference.empty()) {
                explain(expected->no_reference, one.size.empty());
            }
            if (!verdict.right) {
                return;
            }
        }
    }

    // Compares gradients of the first call of each method.
    void gradients(const SizedCalls& one) {
        contest_.size(one.size);
        std::set<std::string> differentiated;
        for (const auto& [method, inputs] : one.calls) {
            if (differentiated.insert(method).second) {
                gradients(method, inputs, one.size.empty());
                if (!verdict.right) {
                    return;
                }
            }
        }
    }

    void measure(const Calls& calls) {
        contest_.size("");
        verdict.times = contest_times({contest_.original, {contest_.kernelized}, calls},
                                      contest_.context, contest_.weights, contest_.alive);
    }

    // Empty, or why one call is not right; then nothing else of the verdict changes.
    std::string problem_of(const SizedCalls& one) {
        const Comparison before = verdict.comparison;
        verdict.right = true;
        try {
            sized(one);
        } catch (const std::exception& error) {
            verdict.right = false;
            verdict.because = cannot_be_run(error.what());
        }
        if (verdict.right) {
            return "";
        }
        verdict.comparison = before;
        return at_size(one.size) + std::exchange(verdict.because, "");
    }

    Verdict verdict;

private:
    void explain(const std::string& no_reference, bool given) {
        if (!verdict.right) {
            verdict.because += "; " + no_reference;
        } else if (given) {
            verdict.because = no_reference;
        }
    }

    void call(const std::string& method, const Inputs& inputs, const Expected& expected,
              bool given) {
        Inputs inputs_after = deep_copy(inputs);
        verdict.ran = false;
        const c10::IValue result = run_seeded(contest_.kernelized, method, inputs_after);
        verdict.ran = true;
        const Tolerance tolerance{contest_.context.tolerance, expected.summed,
                                  given ? std::vector<Bound>() : bounds_[method], contest_.most,
                                  contest_.agreement};
        const Comparison one = compared(method, inputs, result, expected, tolerance);
        remember(method, one.bounds, given);
        agreement_ = std::min(agreement_, one.agreement);
        if (verdict.comparison.allowed == 0 || !one.problem.empty() ||
            one.error * verdict.comparison.allowed > verdict.comparison.error * one.allowed) {
            verdict.comparison = one;
        }
        verdict.comparison.agreement = agreement_;
        if (!one.problem.empty()) {
            verdict.right = false;
            verdict.because = one.problem;
        } else if (unchanged(inputs, expected.inputs_after) && !unchanged(inputs, inputs_after)) {
            verdict.right = false;
            verdict.because = "it writes into its inputs, which the original does not";
        }
    }

    Comparison compared(const std::string& method, const Inputs& inputs, const c10::IValue& result,
                        const Expected& expected, const Tolerance& tolerance) const {
        const Yardstick yardstick =
            contest_.measure ? rounded_yardstick(*contest_.measure, method, inputs, result)
                             : Yardstick{expected.result, inputs,
                                         [&](const Inputs& nearby) {
                                             return run_seeded(contest_.original, method, nearby);
                                         },
                                         contest_.original};
        contest_.alive();
        return contest_.most || !expected.no_reference.empty()
                   ? compare(result, yardstick.result, expected.reference, contest_.norm, tolerance)
                   : compare_beyond_luck(result, yardstick, expected.reference, contest_.norm,
                                         tolerance);
    }

    // A bound that holds on the given inputs holds in other sizes, too.
    void remember(const std::string& method, const std::vector<Bound>& bounds, bool given) {
        auto& known = bounds_[method];
        for (std::size_t i = 0; given && i < bounds.size(); ++i) {
            known.resize(std::max(known.size(), i + 1));
            known[i].error = std::max(known[i].error, bounds[i].error);
            known[i].largest = std::max(known[i].largest, bounds[i].largest);
        }
    }

    // Skips gradients that the original itself cannot compute.
    void gradients(const std::string& method, const Inputs& inputs, bool given) {
        // Each runs once: preparing TorchScript's optimizer for further runs takes longer.
        const torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
        Gradients original;
        Gradients reference;
        Tolerance tolerance{contest_.context.tolerance};
        try {
            contest_.alive();
            original = gradients_of(contest_.original, method, inputs);
            contest_.alive();
            tolerance.summed = longest_reduction([&] {
                reference =
                    gradients_of(contest_.reference, method, with_dtype(inputs, at::kDouble));
            });
        } catch (const std::exception& error) {
            if (given) {
                verdict.because = "gradients were not compared, as the original gives none: " +
                                  run_error(error.what());
            }
            return;
        }
        try {
            const auto problem = wrong_gradient(gradients_of(contest_.kernelized, method, inputs),
                                                original, reference, tolerance);
            verdict.right = problem.empty();
            verdict.because = problem.empty() ? verdict.because : problem;
        } catch (const std::exception& error) {
            verdict.right = false;
            verdict.because = "it cannot be trained: " + run_error(error.what());
        }
    }

    const Contest& contest_;
    std::map<std::string, std::vector<Bound>> bounds_;  // by method
    double agreement_ = 1;                              // the least of all calls
};

}  // namespace

Verdict judge(const Contest& contest, const std::vector<SizedCalls>& sized) {
    Judge judge(contest);
    Verdict& verdict = judge.verdict;
    verdict.right = true;
    verdict.calls = sized.front().calls.size();
    verdict.reached = std::any_of(sized.begin(), sized.end(),
                                  [](const SizedCalls& one) { return !one.calls.empty(); });
    const auto step = [&](const std::string& size, const auto& work) {
        if (!verdict.right) {
            return;
        }
        try {
            work();
        } catch (const std::exception& error) {
            verdict.right = false;
            verdict.because = cannot_be_run(error.what());
        }
        if (!verdict.right) {
            verdict.because = at_size(size) + verdict.because;
        }
    };
    for (const SizedCalls& one : sized) {
        step(one.size, [&] { judge.sized(one); });
    }
    if (contest.context.gradients) {
        step("", [&] { judge.gradients(sized.front()); });
        // One other size is enough: a backward pass costs several runs.
        if (sized.size() > 1) {
            step(sized.back().size, [&] { judge.gradients(sized.back()); });
        }
    }
    if (contest.context.sampling && !sized.front().calls.empty()) {
        step("", [&] { judge.measure(sized.front().calls); });
    }
    return verdict;
}

std::optional<std::size_t> group_of(const SizeGroups& groups, const Inputs& inputs) {
    if (groups.bounds.size() == 1) {
        return 0;
    }
    const auto* value =
        groups.input < inputs.positional.size() ? &inputs.positional[groups.input] : nullptr;
    if (value == nullptr || !value->isTensor() || !value->toTensor().defined()) {
        return std::nullopt;
    }
    const auto bound =
        std::lower_bound(groups.bounds.begin(), groups.bounds.end(), value->toTensor().numel());
    return bound != groups.bounds.end() ? std::optional<std::size_t>(bound - groups.bounds.begin())
                                        : std::nullopt;
}

JudgedSizes judge_by_size(const Contest& contest, const std::vector<SizedCalls>& sized,
                          const SizeGroups& groups) {
    Judge judge(contest);
    Verdict& verdict = judge.verdict;
    verdict.calls = sized.front().calls.size();
    verdict.reached = std::any_of(sized.begin(), sized.end(),
                                  [](const SizedCalls& one) { return !one.calls.empty(); });
    verdict.by_size.resize(groups.bounds.size());
    std::vector<Calls> first(groups.bounds.size());
    std::vector<std::size_t> order;  // of first calls: the given inputs come before other sizes
    for (const SizedCalls& one : sized) {
        for (const auto& call : one.calls) {
            const auto group = group_of(groups, call.second);
            if (!group || !verdict.by_size[*group].problem.empty()) {
                continue;  // what is wrong once is compared no more
            }
            SizeVerdict& here = verdict.by_size[*group];
            if (contest.context.compares) {
                here.problem = judge.problem_of({one.size, one.tuned, {call}});
            }
            here.compared = true;
            if (one.tuned && first[*group].empty()) {
                first[*group] = {call};
                order.push_back(*group);
            }
        }
    }
    const auto wrong = std::find_if(verdict.by_size.begin(), verdict.by_size.end(),
                                    [](const SizeVerdict& one) { return !one.problem.empty(); });
    verdict.right =
        std::any_of(verdict.by_size.begin(), verdict.by_size.end(),
                    [](const SizeVerdict& one) { return one.compared && one.problem.empty(); });
    if (!verdict.right && wrong != verdict.by_size.end()) {
        verdict.because = wrong->problem;
        verdict.ran = !says_cannot_be_run(wrong->problem);
    }
    if (verdict.right && contest.context.gradients && contest.context.compares) {
        // A backward pass is right for every size, or the candidate is not.
        judge.gradients(sized.front());
    }
    JudgedSizes judged{verdict, {}};
    for (const std::size_t group : order) {
        if (verdict.right && contest.context.sampling && groups.timed.contains(group) &&
            verdict.by_size[group].problem.empty()) {
            judged.timed.emplace_back(group, std::move(first[group]));
        }
    }
    return judged;
}

}  // namespace twinkle::runtime
