#pragma once
// The rule of right: compared with a double-precision run of the original, the kernelized result's
// error is at most 1.5 times the original's own in that dtype, or, where that is more, the unit
// roundoff of the dtype, as a result rounded once cannot do better, and what two right orders of
// summation differ by.

#include <torch/script.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

// What one tensor among the results may be off by.
struct Bound {
    double error = 0;
    double largest = 0;  // beside the Euclidean norm
};

// What is known of results beside their values.
struct Tolerance {
    // How many times what the rule allows is allowed: what the user says.
    double factor = 1;
    std::int64_t summed = 1;  // terms of the longest sum (reduction_length.h)
    // At least so much, tensor by tensor in the order of the results; what was allowed on other
    // inputs. The largest of a few rounding errors is a matter of luck, that of many is not.
    std::vector<Bound> least{};
};

struct Comparison {
    // Of the output that is nearest to its bound.
    double error = 0;           // of the result under test
    double original_error = 0;  // of the original in its own dtype
    double allowed = 0;
    std::string problem;        // why it is not right; empty: it is
    std::vector<Bound> bounds;  // of every floating-point tensor among the results
};

// Values of equal structure: tensors, tuples, lists, numbers. What is not floating point must be
// equal to the original. NaN counts only where the reference has it too.
Comparison compare(const c10::IValue& result, const c10::IValue& original,
                   const c10::IValue& reference, Norm norm = Norm::largest,
                   const Tolerance& tolerance = {});

// 2^-p of a floating dtype with p bits of precision (rounding to nearest).
double unit_roundoff(at::ScalarType dtype);

}  // namespace twinkle::runtime
