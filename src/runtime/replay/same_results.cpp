#include "runtime/replay/same_results.h"

#include "runtime/model/nested_values.h"

#include <torch/script.h>

#include <algorithm>
#include <cmath>

namespace twinkle::runtime {

namespace {

constexpr std::int64_t piece = 1 << 24;  // elements

struct Squares {
    double difference = 0;
    double expected = 0;
};

Squares squares_of(const at::Tensor& have, const at::Tensor& want) {
    const auto dtype = at::isComplexType(want.scalar_type()) ? at::kComplexFloat
                       : want.scalar_type() == at::kDouble   ? at::kDouble
                                                             : at::kFloat;
    const at::Tensor ours = have.to(dtype);
    const at::Tensor theirs = want.to(dtype);
    if (dtype != at::kComplexFloat) {
        const auto length = [](const at::Tensor& tensor) {
            return at::linalg_vector_norm(tensor, 2, std::nullopt, false, at::kDouble)
                .item<double>();
        };
        const double difference = length(ours - theirs);
        const double expected = length(theirs);
        if (std::isfinite(difference) && std::isfinite(expected)) {
            return {difference * difference, expected * expected};
        }
    }
    // NaN and infinity must be in the same places.
    const at::Tensor same = (ours == theirs) | (ours.isnan() & theirs.isnan());
    const auto sum = [](const at::Tensor& tensor) {
        return tensor.abs().to(at::kDouble).square().sum().item<double>();
    };
    return {sum((ours - theirs).masked_fill(same, 0)),
            sum(theirs.masked_fill(~theirs.isfinite(), 0))};
}

bool close(const at::Tensor& have, const at::Tensor& want) {
    const bool narrow = want.element_size() < 4;
    const double allowed = narrow ? 2e-2 : 1e-3;
    const at::Tensor ours = have.reshape({-1});
    const at::Tensor theirs = want.reshape({-1});
    Squares all;
    for (std::int64_t begin = 0; begin < theirs.numel(); begin += piece) {
        const std::int64_t count = std::min(piece, theirs.numel() - begin);
        const Squares some =
            squares_of(ours.narrow(0, begin, count), theirs.narrow(0, begin, count));
        all.difference += some.difference;
        all.expected += some.expected;
    }
    return std::sqrt(all.difference) <= allowed * std::sqrt(all.expected);
}

bool same(const at::Tensor& have, const at::Tensor& want) {
    if (have.scalar_type() != want.scalar_type() || have.sizes() != want.sizes() ||
        have.device() != want.device()) {
        return false;
    }
    const bool rounded = want.is_floating_point() || want.is_complex();
    return have.equal(want) || (rounded && close(have, want));
}

}  // namespace

bool same_results(const c10::IValue& replayed, const c10::IValue& expected) {
    const torch::NoGradGuard no_grad;
    const std::vector<at::Tensor> have = tensors_of(replayed);
    const std::vector<at::Tensor> want = tensors_of(expected);
    return std::equal(have.begin(), have.end(), want.begin(), want.end(), same);
}

}  // namespace twinkle::runtime
