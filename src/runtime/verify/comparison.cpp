#include "runtime/verify/comparison.h"
#include "runtime/format.h"

#include <cmath>
#include <limits>

namespace twinkle::runtime {

namespace {

constexpr double tolerated_factor = 1.5;
constexpr double tolerated_largest = 4;  // beside the Euclidean norm
constexpr double infinite = std::numeric_limits<double>::infinity();

// Positions where both are NaN, or the same infinity, agree; where one only is: infinite.
double relative_error(const at::Tensor& value, const at::Tensor& reference, Norm norm) {
    if (value.numel() == 0) {
        return 0;
    }
    const at::Tensor have = value.detach().to(at::kCPU, at::kDouble);
    const at::Tensor want = reference.detach().to(at::kCPU, at::kDouble);
    const at::Tensor same = (have == want) | (have.isnan() & want.isnan());
    const at::Tensor difference = (have - want).abs().masked_fill(same, 0.0);
    if (!difference.isfinite().all().item<bool>()) {
        return infinite;
    }
    const at::Tensor magnitude = want.abs().masked_fill(~want.isfinite(), 0.0);
    const auto measure = [&](const at::Tensor& of) {
        return (norm == Norm::largest ? of.max() : of.norm()).item<double>();
    };
    const double scale = measure(magnitude);
    return scale > 0 ? measure(difference) / scale : measure(difference);
}

// At the worst element a formula of other roundings may lose one bit more than one that happened to
// lose nothing. In half precision that bit is no luck: what is computed in float32 does not lose
// it.
double least_tolerated(at::ScalarType dtype, Norm norm) {
    const bool one_more = norm == Norm::largest && (dtype == at::kFloat || dtype == at::kDouble);
    return unit_roundoff(dtype) * (one_more ? 2 : 1);
}

class Comparer {
public:
    explicit Comparer(Norm norm) : norm_(norm) {}

    void compare(const c10::IValue& result, const c10::IValue& original,
                 const c10::IValue& reference) {
        if (original.isTensor() && result.isTensor() && reference.isTensor()) {
            return tensors(result.toTensor(), original.toTensor(), reference.toTensor());
        }
        if (original.isTuple() && result.isTuple() && reference.isTuple()) {
            return sequences(result.toTupleRef().elements().vec(),
                             original.toTupleRef().elements().vec(),
                             reference.toTupleRef().elements().vec());
        }
        if (original.isList() && result.isList() && reference.isList()) {
            return sequences(result.toListRef().vec(), original.toListRef().vec(),
                             reference.toListRef().vec());
        }
        if (original.isGenericDict() && result.isGenericDict() && reference.isGenericDict()) {
            return dictionaries(result.toGenericDict(), original.toGenericDict(),
                                reference.toGenericDict());
        }
        if (!(result == original)) {
            fail("a result that is no tensor differs");
        }
    }

    Comparison outcome;

private:
    void fail(const std::string& problem) {
        if (outcome.problem.empty()) {
            outcome.problem = problem;
        }
    }

    void sequences(const std::vector<c10::IValue>& result, const std::vector<c10::IValue>& original,
                   const std::vector<c10::IValue>& reference) {
        if (result.size() != original.size() || reference.size() != original.size()) {
            return fail("the number of results differs");
        }
        for (std::size_t i = 0; i < result.size(); ++i) {
            compare(result[i], original[i], reference[i]);
        }
    }

    void dictionaries(const c10::impl::GenericDict& result, const c10::impl::GenericDict& original,
                      const c10::impl::GenericDict& reference) {
        for (const auto& entry : original) {
            if (!result.contains(entry.key()) || !reference.contains(entry.key())) {
                return fail("the keys of the result differ");
            }
            compare(result.at(entry.key()), entry.value(), reference.at(entry.key()));
        }
    }

    void tensors(const at::Tensor& result, const at::Tensor& original,
                 const at::Tensor& reference) {
        if (result.sizes() != original.sizes()) {
            return fail(fmt::format("its shape is [{}], the original's [{}]",
                                    fmt::join(result.sizes(), ", "),
                                    fmt::join(original.sizes(), ", ")));
        }
        if (result.scalar_type() != original.scalar_type()) {
            return fail(fmt::format("its dtype is {}, the original's {}",
                                    c10::toString(result.scalar_type()),
                                    c10::toString(original.scalar_type())));
        }
        if (!original.is_floating_point()) {
            return at::equal(result, original) ? void() : fail("an integer result differs");
        }
        const double own = relative_error(original, reference, norm_);
        const double error = relative_error(result, reference, norm_);
        const double allowed =
            std::max(tolerated_factor * own, least_tolerated(original.scalar_type(), norm_));
        // One figure for all results: that of the one nearest to its bound.
        if (outcome.allowed == 0 || error * outcome.allowed > outcome.error * allowed) {
            outcome.error = error;
            outcome.original_error = own;
            outcome.allowed = allowed;
        }
        if (!(error <= allowed) || std::isinf(error)) {
            fail(std::isinf(error)
                     ? "it has NaN or infinite values that the original has not"
                     : fmt::format("its error is {:.2g}, allowed is {:.2g}", error, allowed));
        }
        if (norm_ == Norm::euclidean) {
            const double largest = relative_error(result, reference, Norm::largest);
            const double bound =
                std::max(tolerated_largest * relative_error(original, reference, Norm::largest),
                         unit_roundoff(original.scalar_type()));
            if (!(largest <= bound)) {
                fail(fmt::format("its largest error is {:.2g}, allowed is {:.2g}", largest, bound));
            }
        }
    }

    Norm norm_;
};

}  // namespace

double unit_roundoff(at::ScalarType dtype) {
    switch (dtype) {
        case at::kDouble: return 0x1p-53;
        case at::kFloat: return 0x1p-24;
        case at::kHalf: return 0x1p-11;
        case at::kBFloat16: return 0x1p-8;
        default: return 0;
    }
}

Comparison compare(const c10::IValue& result, const c10::IValue& original,
                   const c10::IValue& reference, Norm norm) {
    Comparer comparer(norm);
    comparer.compare(result, original, reference);
    return comparer.outcome;
}

}  // namespace twinkle::runtime
