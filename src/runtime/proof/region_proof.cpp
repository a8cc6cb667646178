#include "runtime/proof/region_proof.h"
#include "runtime/proof/binding.h"

#include "runtime/verify/double_reference.h"
#include "runtime/verify/reduction_length.h"
#include "runtime/verify/run_error.h"

#include <torch/csrc/jit/runtime/interpreter.h>

#include <algorithm>
#include <functional>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Values = RegionProof::Values;
constexpr double much_smaller = 1e-3;
constexpr double slack = 4;

Values mapped(const Values& values, const std::function<at::Tensor(const at::Tensor&)>& change) {
    Values changed;
    for (const c10::IValue& value : values) {
        changed.push_back(value.isTensor() && value.toTensor().defined()
                              ? c10::IValue(change(value.toTensor()))
                              : value);
    }
    return changed;
}

bool is_floating(const at::Tensor& tensor) {
    return tensor.is_floating_point();
}

Values copies(const Values& values) {
    return mapped(values, [](const at::Tensor& one) { return one.clone(); });
}

Values in_double(const Values& values) {
    return mapped(values, [](const at::Tensor& one) {
        return is_floating(one) ? one.to(at::kDouble) : one.clone();
    });
}

// The values with each tensor repeated that has as many rows as the input with the most dimensions;
// none: there is no such tensor.
std::optional<Values> repeated(const Values& values) {
    std::int64_t most = 1;
    std::int64_t rows = 0;
    for (const c10::IValue& value : values) {
        if (value.isTensor() && value.toTensor().dim() > most) {
            most = value.toTensor().dim();
            rows = value.toTensor().size(0);
        }
    }
    if (rows == 0) {
        return std::nullopt;
    }
    return mapped(values, [&](const at::Tensor& one) {
        return one.dim() > 1 && one.size(0) == rows ? at::cat({one, one.flip({0})}) : one;
    });
}

Values random_like(const Values& values) {
    at::manual_seed(7);
    return mapped(values, [](const at::Tensor& one) {
        return is_floating(one)
                   ? at::randn(one.sizes(), one.options().dtype(at::kFloat)).to(one.scalar_type())
                   : one.clone();
    });
}

// Results one by one: the elements of a tuple, or of a list that stands for several.
Values run(const std::shared_ptr<jit::Graph>& graph, const Values& inputs, bool unlisted) {
    const torch::NoGradGuard no_grad;
    const jit::GraphOptimizerEnabledGuard unoptimized(false);
    at::manual_seed(0);
    jit::Stack stack = inputs;
    jit::InterpreterState(jit::Code(graph, "region")).run(stack);
    const c10::IValue result = stack.at(0);
    if (unlisted && result.isTensorList()) {
        const auto elements = result.toTensorVector();
        return {elements.begin(), elements.end()};
    }
    return result.isTuple() ? result.toTupleRef().elements().vec() : Values{result};
}

bool unchanged(const Values& before, const Values& after) {
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (before[i].isTensor() && before[i].toTensor().defined()) {
            const at::Tensor& one = before[i].toTensor();
            const at::Tensor& other = after[i].toTensor();
            // NOLINTNEXTLINE(misc-redundant-expression): what differs from itself is no number
            if (!((one == other) | ((one != one) & (other != other))).all().item<bool>()) {
                return false;
            }
        }
    }
    return true;
}

// A call with fewer results leaves some to the original nodes; one with more has unused ones.
bool enough(const std::vector<std::optional<std::size_t>>& results, std::size_t given) {
    const auto matched = static_cast<std::size_t>(
        std::count_if(results.begin(), results.end(), [](const auto& one) { return one; }));
    if (given >= results.size()) {
        return matched == results.size();
    }
    for (std::size_t i = 0; i < given; ++i) {
        if (std::find(results.begin(), results.end(), i) == results.end()) {
            return false;
        }
    }
    return true;
}

}  // namespace

RegionProof::RegionProof(const Region& region, const std::vector<Values>& recorded)
    : graph_(graph_of(region)),
      in_double_(copied_in_double(*graph_)),
      gives_list_(runtime::gives_list(region)) {
    for (const Values& inputs : recorded) {
        if (auto one = case_of("", copies(inputs))) {
            cases_.push_back(*std::move(one));
        }
    }
    if (!possible()) {
        return;
    }
    const Values first = cases_.front().inputs;
    if (auto smaller =
            case_of("on values a thousandth as large, ", mapped(first, [](const at::Tensor& one) {
                        return is_floating(one) ? one * much_smaller : one.clone();
                    }))) {
        cases_.push_back(*std::move(smaller));
    }
    if (auto twice = repeated(first)) {
        if (auto more = case_of("on twice the batch, ", *std::move(twice))) {
            cases_.push_back(*std::move(more));
        }
    }
    random_ = case_of("", random_like(first));
}

// None: the region itself cannot run on these.
std::optional<RegionProof::Case> RegionProof::case_of(std::string what, Values inputs) const {
    try {
        Case one{std::move(what), std::move(inputs), {}, {}};
        one.results = run(graph_, copies(one.inputs), false);
        one.tolerance.summed = longest_reduction(
            [&] { one.reference = run(in_double_, in_double(one.inputs), false); });
        return one;
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

RegionProof::Outcome RegionProof::examine(const Case& one, const Values& given) const {
    Outcome outcome;
    std::string problem;
    for (std::size_t i = 0; i < one.results.size(); ++i) {
        std::optional<std::size_t> found;
        for (std::size_t step = 0; step < given.size() && !found; ++step) {
            // Tries the result in the same place first, then the others.
            const std::size_t same = i < given.size() ? i : 0;
            const std::size_t j = step == 0 ? same : step <= same ? step - 1 : step;
            const auto comparison =
                compare(given[j], one.results[i], one.reference[i], Norm::largest, one.tolerance);
            // Cases beyond the recorded values only distinguish ways of calling, not kernels.
            const bool near = &one != &cases_.front() && comparison.allowed > 0 &&
                              comparison.error <= slack * comparison.allowed;
            if (comparison.problem.empty() || near) {
                found = j;
            } else if (problem.empty()) {
                problem = one.what + comparison.problem;
                outcome.excess =
                    comparison.allowed > 0 ? comparison.error / comparison.allowed : outcome.excess;
            }
        }
        outcome.results.push_back(found);
    }
    if (!enough(outcome.results, given.size())) {
        outcome.problem = problem.empty() ? "it gives another number of results" : problem;
    }
    return outcome;
}

RegionProof::Outcome RegionProof::examine(const std::shared_ptr<jit::Graph>& call) const {
    Outcome outcome;
    for (const Case& one : cases_) {
        Outcome here;
        try {
            const Values inputs = copies(one.inputs);
            const Values given = run(call, inputs, !gives_list_);
            here = examine(one, given);
            if (!unchanged(one.inputs, inputs)) {
                here.problem = "it writes into what it is given";
            }
        } catch (const std::exception& error) {
            here.problem = one.what + cannot_be_run(error.what());
        }
        if (!here.problem.empty() || &one == &cases_.front()) {
            outcome = here;
        } else if (outcome.results != here.results) {
            outcome.problem = "which of its results is which is not the same for all inputs";
        }
        if (!outcome.problem.empty()) {
            return outcome;
        }
    }
    return outcome;
}

std::optional<Values> RegionProof::on_random_values(const std::shared_ptr<jit::Graph>& call) const {
    if (!random_) {
        return std::nullopt;
    }
    try {
        return run(call, copies(random_->inputs), !gives_list_);
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

bool RegionProof::right_on_random_values(
    const Values& given, const std::vector<std::optional<std::size_t>>& results) const {
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i] && (*results[i] >= given.size() ||
                           !compare(given[*results[i]], random_->results[i], random_->reference[i],
                                    Norm::largest, random_->tolerance)
                                .problem.empty())) {
            return false;
        }
    }
    return true;
}

bool same_results(const Values& one, const std::vector<std::optional<std::size_t>>& results,
                  const Values& other,
                  const std::vector<std::optional<std::size_t>>& other_results) {
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i].has_value() != other_results[i].has_value()) {
            return false;
        }
        if (results[i]) {
            const c10::IValue& value = one.at(*results[i]);
            if (!compare(other.at(*other_results[i]), value, value).problem.empty()) {
                return false;
            }
        }
    }
    return true;
}

}  // namespace twinkle::runtime
