#include "runtime/verify/contest_times.h"

#include <algorithm>
#include <unordered_set>

namespace twinkle::runtime {

namespace {

// What is in no cache when a site of the whole model is called. In training, a backward pass
// follows while it is.
std::vector<at::Tensor> cold_weights(const TimedContest& contest,
                                     const VerificationContext& context,
                                     const ModelWeights& weights) {
    if (context.steps || !weights.exceed_caches()) {
        return {};
    }
    auto cold = weights_of(contest.original, contest.calls, weights);
    for (const torch::jit::Module& candidate : contest.candidates) {
        const auto own = weights_of(candidate, {}, weights);
        cold.insert(cold.end(), own.begin(), own.end());
    }
    std::unordered_set<const void*> seen;
    std::erase_if(cold, [&](const at::Tensor& tensor) {
        return !tensor.has_storage() || !seen.insert(tensor.storage().data()).second;
    });
    return cold;
}

}  // namespace

Samples contest_times(const TimedContest& contest, const VerificationContext& context,
                      const ModelWeights& weights, const std::function<void()>& alive) {
    std::vector<std::function<void()>> contestants = {
        contestant(contest.original, contest.calls, context.steps, weights)};
    const bool several = contest.candidates.size() > 1;
    for (const torch::jit::Module& candidate : contest.candidates) {
        (several ? lend_parameters : share_parameters)(contest.original, candidate);
        contestants.push_back(contestant(candidate, contest.calls, context.steps, weights));
    }
    const std::vector<at::Tensor> cold = cold_weights(contest, context, weights);
    Sampling sampling = *context.sampling;
    sampling.budget_ms *= static_cast<double>(contest.candidates.size());
    return time_in_turns(contestants, sampling, [&] {
        alive();
        std::for_each(cold.begin(), cold.end(), evict_from_caches);
    });
}

}  // namespace twinkle::runtime
