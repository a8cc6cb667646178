// The memory layout of results, and which inputs must be copied to be read.
#include "operator.h"

#include <utility>

namespace twinkle_pack {
namespace {

// 1: b belongs outside of a, -1: the order is right, 0: undecided.
int must_swap(const View& view, int a, int b) {
    if (view.sizes[a] == 1 || view.sizes[b] == 1) return 0;
    if (view.strides[a] == 0 || view.strides[b] == 0) return 0;
    if (view.strides[a] == view.strides[b]) return view.sizes[a] < view.sizes[b] ? 1 : 0;
    return view.strides[a] < view.strides[b] ? 1 : -1;
}

void set_strides(const int64_t* sizes, const Order& order, int64_t* strides) {
    int64_t step = 1;
    for (int64_t i = order.dims - 1; i >= 0; --i) {
        const int d = order.at[i];
        strides[d] = step;
        step *= sizes[d] > 1 ? sizes[d] : 1;
    }
}

}  // namespace

Order Order::identity(int64_t dims) {
    Order order;
    order.dims = dims;
    for (int d = 0; d < dims; ++d) order.at[d] = d;
    return order;
}

Order Order::of(const View& view) {
    Order order = identity(view.dims);
    for (int i = 1; i < view.dims; ++i) {
        int at = i;
        for (int outer = i - 1; outer >= 0; --outer) {
            const int swap = must_swap(view, order.at[outer], order.at[at]);
            if (swap < 0) break;
            if (swap == 0) continue;
            std::swap(order.at[outer], order.at[at]);
            at = outer;
        }
    }
    return order;
}

Order Order::keeping_rows(const View& view) {
    const Order order = of(view);
    const bool kept = view.dims > 0 && order.at[view.dims - 1] == view.dims - 1;
    return kept ? order : identity(view.dims);
}

void Plan::add(const View& shape, DType dtype) {
    add_with_last(shape, shape.last_size(), dtype);
}

void Plan::add_with_last(const View& shape, int64_t last, DType dtype) {
    Result& result = results[result_count++];
    result.dtype = dtype;
    result.dims = shape.dims;
    for (int64_t d = 0; d < shape.dims; ++d) result.sizes[d] = shape.sizes[d];
    if (shape.dims > 0) result.sizes[shape.dims - 1] = last;
    set_strides(result.sizes, order, result.strides);
}

void Plan::add_row(int64_t size, DType dtype) {
    Result& result = results[result_count++];
    result.dtype = dtype;
    result.dims = 1;
    result.sizes[0] = size;
    result.strides[0] = 1;
}

bool must_copy(const View& input, const Plan& plan) {
    if (!input.is_there() || input.dims == 0) return false;
    const bool ordered = input.dims == plan.order.dims;
    const int64_t row = ordered ? plan.order.at[input.dims - 1] : input.dims - 1;
    return input.sizes[row] > 1 && input.strides[row] != 1;
}

void dense_strides(const View& input, const Plan& plan, int64_t* strides) {
    const bool ordered = input.dims == plan.order.dims;
    set_strides(input.sizes, ordered ? plan.order : Order::identity(input.dims), strides);
}

}  // namespace twinkle_pack
