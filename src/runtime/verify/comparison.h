#pragma once
// The rule of right. Errors are measured against a double-precision run of the original. The
// kernelized result's may be 1.5 times the original's own in that dtype or, if that is more, the
// unit roundoff of the dtype (a result rounded once cannot do better) plus the difference that two
// correct orders of summation may have.

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
    // difference is random (measured on 14 models and 560 inputs: 0.7 % of correct models exceeded
    // 1.5 times the original's largest error, none its Euclidean one). The largest may then be 4
    // times the original's, as may the Euclidean one of fewer than 64 values.
    euclidean,
};

// Allowed errors of one tensor among the results.
struct Bound {
    double error = 0;
    double largest = 0;  // beside the Euclidean norm
};

// What the rule takes into account beside the values.
struct Tolerance {
    // Multiplies what the rule allows; set by the user.
    double factor = 1;
    std::int64_t summed = 1;  // terms of the longest sum (reduction_length.h)
    // Lower bounds, by tensor in the order of the results: what was allowed on other inputs. The
    // largest of a few rounding errors is random, that of many is not.
    std::vector<Bound> least{};
    // The error that may be, instead of all of the above: of what computes with fewer bits.
    std::optional<double> most{};
    // The share of rows that must have their largest value at the same place as the reference.
    std::optional<double> agreement{};
};

struct Comparison {
    // Of the output that is nearest to its bound:
    double error = 0;           // of the result under test
    double original_error = 0;  // of the original in its own dtype
    double allowed = 0;
    std::string problem;        // why it is not right; empty: it is
    std::vector<Bound> bounds;  // of every floating-point tensor among the results
    double agreement = 1;       // the share of rows of the results whose largest value is in place
};

// Compares values of equal structure: tensors, tuples, lists, numbers. Values that are not floating
// point must equal the original's. NaN is accepted only where the reference has it too.
Comparison compare(const c10::IValue& result, const c10::IValue& original,
                   const c10::IValue& reference, Norm norm = Norm::largest,
                   const Tolerance& tolerance = {});

// 2^-p of a floating dtype with p bits of precision (rounding to nearest).
double unit_roundoff(at::ScalarType dtype);

}  // namespace twinkle::runtime
