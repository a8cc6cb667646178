#include "runtime/proof/binding_search.h"
#include "runtime/graph/format.h"

#include "runtime/proof/bound_call.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::size_t most_trials = 1000;

struct Right {
    CallBinding binding;
    std::optional<RegionProof::Values> on_random_values;
};

// Output tensors shaped like the only result of the region.
std::vector<ResultLike> outs_for(const Region& region, const RegionProof& proof) {
    std::vector<ResultLike> outs;
    if (proof.results().size() != 1 || !proof.results()[0].isTensor()) {
        return outs;
    }
    const at::Tensor result = proof.results()[0].toTensor();
    for (std::size_t i = 0; i < region.inputs.size(); ++i) {
        const c10::IValue& value = proof.inputs()[i];
        if (!value.isTensor() || value.toTensor().scalar_type() != result.scalar_type() ||
            value.toTensor().dim() != result.dim() || result.dim() == 0) {
            continue;
        }
        auto sizes = value.toTensor().sizes().vec();
        for (const bool halved : {false, true}) {
            if (result.sizes() == at::IntArrayRef(sizes)) {
                outs.push_back({i, halved});
            }
            sizes.back() /= 2;
        }
    }
    return outs;
}

std::vector<CallBinding> candidates(const Region& region, const Substitutes& substitutes,
                                    const RegionProof& proof) {
    std::vector<CallBinding> all;
    for (std::size_t i = 0; i < substitutes.size(); ++i) {
        for (CallBinding& one : bindings_of(region, substitutes[i], 0, most_trials)) {
            one.substitute = i;
            all.push_back(std::move(one));
        }
    }
    for (std::size_t i = 0; i < substitutes.size(); ++i) {
        if (substitutes[i].parameters.empty()) {
            continue;
        }
        for (const ResultLike& out : outs_for(region, proof)) {
            for (CallBinding& one : bindings_of(region, substitutes[i], 1, most_trials)) {
                one.substitute = i;
                one.out = out;
                all.push_back(std::move(one));
            }
        }
    }
    std::stable_sort(all.begin(), all.end(), [](const CallBinding& one, const CallBinding& other) {
        return one.unusual < other.unusual;
    });
    all.resize(std::min(all.size(), most_trials));
    return all;
}

class Trials {
public:
    Trials(const Region& region, const Substitutes& substitutes, const RegionProof& proof)
        : region_(region), substitutes_(substitutes), proof_(proof) {}

    // Returns whether this way is right beyond doubt, so that no other need be tried.
    bool examine(CallBinding binding) {
        const Substitute& substitute = substitutes_.at(binding.substitute);
        const auto graph = graph_of(region_, substitute, binding);
        if (!graph) {
            not_called_ = not_called_.empty() ? graph.error() : not_called_;
            return false;
        }
        auto outcome = proof_.examine(*graph);
        if (!outcome.problem.empty()) {
            if (wrong_.empty() || outcome.excess < least_excess_) {
                wrong_ = outcome.problem;
                least_excess_ = outcome.excess;
            }
            return false;
        }
        binding.results = std::move(outcome.results);
        Right right{std::move(binding), proof_.on_random_values(*graph)};
        const bool certain =
            right.on_random_values &&
            proof_.right_on_random_values(*right.on_random_values, right.binding.results);
        if (certain) {
            right_.clear();
        }
        right_.push_back(std::move(right));
        return certain;
    }

    bool found() const { return !right_.empty(); }

    tl::expected<CallBinding, std::string> result() const {
        if (right_.empty()) {
            return tl::make_unexpected(!wrong_.empty()        ? wrong_
                                       : !not_called_.empty() ? not_called_
                                                              : cannot_be_called());
        }
        const Right& first = right_.front();
        for (const Right& other : right_) {
            if (&other != &first && !same(first, other)) {
                return tl::make_unexpected(
                    "its arguments cannot be told apart on these inputs: it is right in several "
                    "ways that differ on other values");
            }
        }
        return first.binding;
    }

private:
    static bool same(const Right& one, const Right& other) {
        return one.on_random_values && other.on_random_values &&
               same_results(*one.on_random_values, one.binding.results, *other.on_random_values,
                            other.binding.results);
    }

    std::string cannot_be_called() const {
        return fmt::format("its parameters do not fit what goes into the function: {} values",
                           region_.inputs.size());
    }

    const Region& region_;
    const Substitutes& substitutes_;
    const RegionProof& proof_;
    std::vector<Right> right_;
    // The errors of the first way that could not be compiled, and of the one that came
    // nearest.
    std::string not_called_, wrong_;
    double least_excess_ = 0;
};

// Equal for regions with equal code, whatever the names of their values.
std::string structure_of(const Region& region) {
    const auto graph = graph_of(region);
    const auto forget = [](at::ArrayRef<jit::Value*> values) {
        for (jit::Value* value : values) {
            value->setDebugName("");
        }
    };
    forget(graph->inputs());
    for (jit::Node* node : graph->nodes()) {
        forget(node->outputs());
    }
    return graph->toString(false);
}

}  // namespace

tl::expected<CallBinding, std::string> BindingSearch::find(
    const Region& region, const Substitutes& substitutes,
    const std::vector<RegionProof::Values>& recorded) {
    const RegionProof proof(region, recorded);
    if (!proof.possible()) {
        return tl::make_unexpected("the piece of the trace that it is cannot be run by itself");
    }
    const std::pair key{&substitutes, structure_of(region)};
    if (const auto known = known_.find(key); known != known_.end()) {
        Trials again(region, substitutes, proof);
        again.examine(known->second);
        if (again.found()) {
            return again.result();
        }
    }
    Trials trials(region, substitutes, proof);
    std::optional<std::size_t> level;
    for (const CallBinding& one : candidates(region, substitutes, proof)) {
        if (level && one.unusual > *level) {
            break;
        }
        if (trials.examine(one)) {
            break;
        }
        if (trials.found()) {
            level = one.unusual;
        }
    }
    auto result = trials.result();
    if (result) {
        known_.insert_or_assign(key, *result);
    }
    return result;
}

}  // namespace twinkle::runtime
