#pragma once
// An operator, for both ways of registration: a schema, a plan (throws std::runtime_error for
// inputs that it does not support; lists the results to allocate), and the computation.

#include <cstdint>

#include "rules.h"
#include "view.h"

namespace twinkle_pack {

constexpr int most_tensors = 8, most_numbers = 11, most_results = 3;
constexpr int64_t most_dims = 64;  // LibTorch's own limit

// The arguments, each kind in the schema's order. Bools and integers are numbers.
struct Inputs {
    View tensors[most_tensors];
    double numbers[most_numbers] = {};
    Config config;
};

// Dimensions from the outermost in memory to the innermost.
struct Order {
    int64_t dims;
    int at[most_dims];

    static Order identity(int64_t dims);
    // The order of the strides, in which PyTorch's elementwise operators allocate results: a
    // transposed tensor gives a transposed result.
    static Order of(const View& view);
    // The same, or the identity if the last dimension would not be the innermost.
    static Order keeping_rows(const View& view);
};

struct Result {
    DType dtype;
    int64_t dims;
    int64_t sizes[most_dims], strides[most_dims];
};

struct Plan {
    Order order;
    Result results[most_results];

    // Adds a result of this shape, dense in memory, its dimensions in `order`.
    void add(const View& shape, DType dtype);
    // Adds a result with another last size.
    void add_with_last(const View& shape, int64_t last, DType dtype);
    void add_row(int64_t size, DType dtype);

    // An input that is read as it lies, whatever its strides.
    void read_in_place(int tensor) { in_place |= 1U << tensor; }
    bool is_read_in_place(int tensor) const { return (in_place >> tensor & 1U) != 0; }

    int result_count = 0;

private:
    uint32_t in_place = 0;
};

// Splits [0, end) over threads, in pieces of at least `grain`.
using Split = void (*)(int64_t end, int64_t grain,
                       void (*body)(int64_t begin, int64_t end, void* context), void* context);
struct ParallelFor {
    Split split;
    int64_t threads;    // over which it is split, at most
    int64_t grain = 0;  // of the call's configuration; 0: that of the rules

    int64_t grain_or(int64_t rule) const { return grain > 0 ? grain : rule; }
    void operator()(int64_t end, int64_t least, void (*body)(int64_t, int64_t, void*),
                    void* context) const {
        split(end, least, body, context);
    }
};

// The same result by LibTorch: aten::linear of the first tensor with each pair of the next ones
// (weight, bias), then an operator of this table over these products.
struct Composition {
    int products = 0;
    const char* then = nullptr;  // null: the products are the results
    // An operator that makes the weight of x and the two tensors behind it; null: it is given.
    const char* weight = nullptr;
    // An operator that rounds the rows of x to fp8, which LibTorch multiplies by the weight as it
    // is (_scaled_mm) where the CUDA kernel says so.
    const char* round = nullptr;
};

struct Operator {
    const char* name;
    const char* schema;  // whole, so that who reads the library's strings finds it
    // A letter each: t tensor, o optional tensor, f float, i int, b bool; of the configuration, by
    // keyword, w way, g grain, r reading.
    const char* arguments;
    void (*plan)(const char* name, const Inputs& inputs, Plan& plan);
    // `inputs` must be readable in place, `results` as planned.
    void (*compute)(const Inputs& inputs, const Plan& plan, void* const* results,
                    ParallelFor parallel);
    // Whether `compute` can and should be used for these inputs on this CPU; else, and on other
    // devices that have no kernel, the composition is. Null: always.
    bool (*serves)(const Inputs& inputs) = nullptr;
    Composition composition = {};
    // The result is a Tensor?: None, unless `serves`, where the caller is to use LibTorch's.
    bool may_decline = false;
};

// Whether an input cannot be read in place: the caller passes a dense copy, its dimensions in the
// plan's order (if it has as many; a tensor of fewer is made contiguous).
bool must_copy(const View& input, const Plan& plan);
// The strides of such a copy.
void dense_strides(const View& input, const Plan& plan, int64_t* strides);

constexpr int operator_count = 66;
const Operator* operators();                      // operator_count of them
const Operator& find_operator(const char* name);  // std::runtime_error if there is none

}  // namespace twinkle_pack
