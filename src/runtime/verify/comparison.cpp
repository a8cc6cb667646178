#include "runtime/verify/comparison.h"
#include "runtime/graph/format.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace twinkle::runtime {

namespace {

constexpr double tolerated_factor = 1.5;
constexpr double tolerated_largest = 4;  // beside the Euclidean norm
// Two independent errors of n values each have Euclidean norms that differ by more than 1.5 times
// in 0.07 % of cases for n = 64, but in 31 % for n = 2 (the distribution of F with n and n degrees
// of freedom): of fewer values it is as random as the largest difference.
constexpr std::int64_t enough_values = 64;
constexpr double infinite = std::numeric_limits<double>::infinity();

// How much is looked at in one go, in double precision: on a CPU what its caches hold.
constexpr std::int64_t block_on_cpu = 1 << 15;
constexpr std::int64_t block_on_device = 1 << 24;

struct Norms {
    double euclidean = 0;
    double largest = 0;

    double of(Norm norm) const { return norm == Norm::largest ? largest : euclidean; }

    void add(double other_euclidean, double other_largest) {
        euclidean = std::hypot(euclidean, other_euclidean);
        largest = std::max(largest, other_largest);
    }
};

struct Errors {
    Norms difference;
    Norms reference;

    double relative(Norm norm) const {
        const double scale = reference.of(norm);
        return scale > 0 ? difference.of(norm) / scale : difference.of(norm);
    }
};

// NaN in both, or the same infinity, agrees; in only one of them the difference is NaN or infinite.
// Euclidean and largest: of the difference, then of the reference.
std::array<double, 4> norms_of(const at::Tensor& value, const at::Tensor& reference) {
    const at::Tensor have = value.to(at::kDouble);
    const at::Tensor want = reference.to(at::kDouble);
    const at::Tensor same = (have == want).logical_or_(have.isnan().logical_and_(want.isnan()));
    const at::Tensor difference = (have - want).abs_().masked_fill_(same, 0.0);
    const at::Tensor magnitude = want.abs().masked_fill_(want.isfinite().logical_not_(), 0.0);
    const at::Tensor norms =
        at::stack({difference.norm(), difference.max(), magnitude.norm(), magnitude.max()}).cpu();
    const auto* const found = norms.const_data_ptr<double>();
    return {found[0], found[1], found[2], found[3]};
}

// Computed where the values lie, and block by block: copies of a whole large result in double
// precision cost time and memory.
Errors errors_of(const at::Tensor& value, const at::Tensor& reference) {
    const at::Tensor all = value.detach().reshape(-1);
    const at::Tensor exact = reference.detach().to(all.device()).reshape(-1);
    const std::int64_t size = all.is_cpu() ? block_on_cpu : block_on_device;
    const std::int64_t blocks = (all.numel() + size - 1) / size;
    std::vector<std::array<double, 4>> found(static_cast<std::size_t>(blocks));
    const auto look = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t block = begin; block < end; ++block) {
            const std::int64_t count = std::min(size, all.numel() - block * size);
            found[static_cast<std::size_t>(block)] =
                norms_of(all.narrow(0, block * size, count), exact.narrow(0, block * size, count));
        }
    };
    if (all.is_cpu()) {
        at::parallel_for(0, blocks, 1, look);
    } else {
        look(0, blocks);
    }
    Errors errors;
    for (const auto& norms : found) {
        errors.difference.add(norms[0], std::isfinite(norms[1]) ? norms[1] : infinite);
        errors.reference.add(norms[2], norms[3]);
    }
    if (std::isinf(errors.difference.largest)) {
        errors.difference.euclidean = infinite;
    }
    return errors;
}

// The difference that two correct orders of summing n terms may have. Each of n - 1 additions
// rounds its partial sum by at most u. These errors are independent and of both signs, so that
// their sum is within a constant times sqrt(n) u, in any order, with high probability (Higham and
// Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41, 2019).
// The constant: in sequential summation an error is spread over u times the partial sum, with a
// standard deviation of u / sqrt(3) of it, and partial sums of terms of one sign grow evenly:
// sqrt(n) u / 3 in all. The difference of two such sums is sqrt(2) times that, half of sqrt(n) u.
// Blocks, trees and vectors, as kernels sum, lose less, and so do terms of both signs, measured
// against the largest result. float16 and bfloat16 are accumulated in float32. Wrong values are far
// above: an epsilon of 1e-6 instead of 1e-5 in a norm changes values of unit variance by 75 u,
// where 4,096 terms allow 32 u.
double order_of_summation(at::ScalarType dtype, std::int64_t terms) {
    const double roundoff = unit_roundoff(dtype == at::kDouble ? at::kDouble : at::kFloat);
    return terms > 1 ? std::sqrt(static_cast<double>(terms)) / 2 * roundoff : 0;
}

// At the worst element, a formula that rounds differently may lose one bit more than an original
// that happened to lose nothing. Half precision gets no such bit: computing in float32 does not
// lose it. What the sum loses comes on top.
double least_tolerated(at::ScalarType dtype, Norm norm, std::int64_t summed) {
    const bool one_more = norm == Norm::largest && (dtype == at::kFloat || dtype == at::kDouble);
    return unit_roundoff(dtype) * (one_more ? 2 : 1) + order_of_summation(dtype, summed);
}

class Comparer {
public:
    Comparer(Norm norm, const Tolerance& tolerance) : norm_(norm), tolerance_(tolerance) {}

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
        const Errors own_errors = errors_of(original, reference);
        const Errors errors = errors_of(result, reference);
        const double own = own_errors.relative(norm_);
        const double error = errors.relative(norm_);
        const std::size_t index = outcome.bounds.size();
        const Bound least = index < tolerance_.least.size() ? tolerance_.least[index] : Bound{};
        const auto least_of = [&](Norm norm) {
            return least_tolerated(original.scalar_type(), norm, tolerance_.summed);
        };
        const bool random = norm_ == Norm::euclidean && original.numel() < enough_values;
        const double factor = random ? tolerated_largest : tolerated_factor;
        const double allowed = tolerance_.most.value_or(
            std::max(tolerance_.factor * std::max(factor * own, least_of(norm_)), least.error));
        outcome.bounds.push_back({allowed, 0});
        // One figure for all results: that of the result nearest to its bound.
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
        if (tolerance_.most) {
            return rows(result, reference);
        }
        if (norm_ == Norm::euclidean) {
            const double largest = errors.relative(Norm::largest);
            const double own_largest = own_errors.relative(Norm::largest);
            const double bound =
                std::max(tolerance_.factor *
                             std::max(tolerated_largest * own_largest, least_of(Norm::largest)),
                         least.largest);
            outcome.bounds.back().largest = bound;
            if (!(largest <= bound)) {
                fail(fmt::format("its largest error is {:.2g}, allowed is {:.2g}", largest, bound));
            }
        }
    }

    // Where a row's largest value stands is what a classifier or a sampler reads of it.
    void rows(const at::Tensor& result, const at::Tensor& reference) {
        if (result.dim() == 0 || result.numel() == 0 || !tolerance_.agreement) {
            return;
        }
        const double share =
            (result.argmax(-1) == reference.argmax(-1)).to(at::kDouble).mean().item<double>();
        outcome.agreement = std::min(outcome.agreement, share);
        if (share < *tolerance_.agreement) {
            fail(
                fmt::format("only {:.2f} % of its rows have their largest value in place, wanted "
                            "are {:.2f} %",
                            100 * share, 100 * *tolerance_.agreement));
        }
    }

    Norm norm_;
    const Tolerance& tolerance_;
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
                   const c10::IValue& reference, Norm norm, const Tolerance& tolerance) {
    Comparer comparer(norm, tolerance);
    comparer.compare(result, original, reference);
    return comparer.outcome;
}

}  // namespace twinkle::runtime
