#pragma once
// The rule of right: compared with a double-precision run of the original, the kernelized result's
// error is at most 1.5 times the original's own in that dtype, or the unit roundoff of the dtype,
// where that is more: a result rounded once cannot do better.

#include <torch/script.h>

#include <optional>
#include <string>

namespace twinkle::runtime {

// How the difference of two tensors becomes one number, relative to the reference.
enum class Norm {
    largest,  // the largest difference over the largest magnitude: for a site
    // The root of the summed squares over the reference's: for a whole model, whose largest
    // difference is a matter of luck (measured on 14 models and 560 inputs: of right ones, 0.7 %
    // exceeded 1.5 times the original's largest error, none its Euclidean one). The largest may be
    // 4 times the original's then.
    euclidean,
};

struct Comparison {
    // Of the output that is nearest to its bound.
    double error = 0;           // of the result under test
    double original_error = 0;  // of the original in its own dtype
    double allowed = 0;
    std::string problem;  // why it is not right; empty: it is
};

// Values of equal structure: tensors, tuples, lists, numbers. What is not floating point must be
// equal to the original. NaN counts only where the reference has it too.
Comparison compare(const c10::IValue& result, const c10::IValue& original,
                   const c10::IValue& reference, Norm norm = Norm::largest);

// 2^-p of a floating dtype with p bits of precision (rounding to nearest).
double unit_roundoff(at::ScalarType dtype);

}  // namespace twinkle::runtime
