#include "runtime/verify/contest_times.h"

#include "runtime/verify/other_layers.h"

#include <algorithm>
#include <unordered_set>

namespace twinkle::runtime {

namespace {

// The weights of the original and of all candidates, each once.
std::vector<at::Tensor> all_weights(const TimedContest& contest, const ModelWeights& weights) {
    auto all = weights_of(contest.original, contest.calls, weights);
    for (const torch::jit::Module& candidate : contest.candidates) {
        const auto own = weights_of(candidate, {}, weights);
        all.insert(all.end(), own.begin(), own.end());
    }
    std::unordered_set<const void*> seen;
    std::erase_if(all, [&](const at::Tensor& tensor) {
        return !tensor.has_storage() || !seen.insert(tensor.storage().data()).second;
    });
    return all;
}

// Turns them into graphs where the first one, the original, can be captured: a model with it is
// replayed then, and with a candidate that cannot be captured it is not. How often each holds its
// work.
std::size_t capture_all(std::vector<std::function<void()>>& works, const CaptureWork& capture,
                        const std::function<void()>& alive) {
    std::size_t times = 0;
    try {
        const RepeatedWork first = capture(works.front(), 0);
        works.front() = first.run;
        times = first.times;
    } catch (const std::exception&) {
        return 1;
    }
    for (auto work = works.begin() + 1; work != works.end(); ++work) {
        alive();
        try {
            *work = capture(*work, times).run;
        } catch (const std::exception& error) {
            throw NotCaptured(error.what());
        }
    }
    return times;
}

}  // namespace

bool come_from_memory(const ModelWeights& weights, const VerificationContext& context) {
    return weights.exceed_caches() && !context.steps;
}

Samples contest_times(const TimedContest& contest, const VerificationContext& context,
                      const ModelWeights& weights, const std::function<void()>& alive) {
    std::vector<std::function<void()>> contestants = {
        contestant(contest.original, contest.calls, context.steps, weights)};
    const bool several = contest.candidates.size() > 1;
    for (const torch::jit::Module& candidate : contest.candidates) {
        (several ? lend_parameters : share_parameters)(contest.original, candidate);
        contestants.push_back(contestant(candidate, contest.calls, context.steps, weights));
    }
    const std::vector<at::Tensor> cold = come_from_memory(weights, context)
                                             ? all_weights(contest, weights)
                                             : std::vector<at::Tensor>();
    Sampling sampling = *context.sampling;
    sampling.budget_ms *= static_cast<double>(contest.candidates.size());
    const bool captured = context.capture && !context.steps;
    const std::size_t times = captured ? capture_all(contestants, context.capture, alive) : 1;
    const auto others = other_layers(context.device.value_or(at::kCPU));
    Samples samples = time_in_turns(contestants, sampling, [&] {
        alive();
        std::for_each(cold.begin(), cold.end(), evict_from_caches);
        others();
    });
    for (std::vector<double>& own : samples) {
        for (double& us : own) {
            us /= static_cast<double>(times);
        }
    }
    return samples;
}

}  // namespace twinkle::runtime
