// Rotary position embedding.
#include "isa/functions.h"
#include "memory.h"
#include "operators/checks.h"
#include "operators/families.h"
#include "row_walk.h"

namespace twinkle_pack {
namespace {

// Whether cos's dimensions, except the last, broadcast to x's.
bool broadcasts(const View& cos, const View& x) {
    if (cos.dims > x.dims) return false;
    for (int64_t d = 0; d + 1 < cos.dims; ++d) {
        const int64_t size = cos.sizes[d];
        if (size != 1 && size != x.sizes[x.dims - cos.dims + d]) return false;
    }
    return true;
}

void plan(const char* name, const Inputs& in, Plan& plan) {
    const View &x = in.tensors[0], &cos = in.tensors[1], &sin = in.tensors[2];
    const DType dtype = supported_dtype(name, "x", x);
    const DType table = same_kind(name, "cos", cos, "sin", sin);
    if (x.dims == 0 || cos.dims == 0)
        refuse(name, "x and cos need a last dimension: the elements to rotate");
    if (cos.last_size() > x.last_size() || cos.last_size() % 2 != 0)
        refuse(name, "the last size of cos, " + std::to_string(cos.last_size()) +
                         ", must be even and at most that of x, " + std::to_string(x.last_size()));
    if (!broadcasts(cos, x))
        refuse(name, "cos, " + shape_text(cos) + ", does not broadcast to x, " + shape_text(x));
    plan.order = Order::keeping_rows(x);
    plan.add(x, promoted(dtype, table));
}

// The strides of cos seen as a tensor of x's dimensions.
void broadcast_strides(const View& cos, const View& x, int64_t* strides) {
    const int64_t missing = x.dims - cos.dims;
    for (int64_t d = 0; d < x.dims; ++d)
        strides[d] = d < missing || cos.sizes[d - missing] == 1 ? 0 : cos.strides[d - missing];
    strides[x.dims - 1] = 1;
}

void compute(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    const View &x = in.tensors[0], &cos = in.tensors[1], &sin = in.tensors[2];
    const int64_t elements = x.elements();
    if (elements == 0) return;
    const bool interleaved = in.numbers[0] != 0, transposed = in.numbers[1] != 0;
    const RowFunctions& functions = row_functions();
    const auto& rows = interleaved ? functions.rotary_pairs : functions.rotary;
    const auto row = rows[static_cast<int>(dtype_of(x))][static_cast<int>(dtype_of(cos))];
    const Result& result = plan.results[0];
    prefer_huge_pages(results[0], elements * element_size(result.dtype));
    int64_t cos_strides[most_dims], sin_strides[most_dims];
    broadcast_strides(cos, x, cos_strides);
    broadcast_strides(sin, x, sin_strides);
    Placed cos_placed = placed(cos), sin_placed = placed(sin);
    cos_placed.strides = cos_strides;
    sin_placed.strides = sin_strides;
    const RowShape<4> shape(x.sizes, plan.order,
                            {placed(x), cos_placed, sin_placed, placed(result, results[0])}, false);
    const int64_t r = cos.last_size();
    for_each_row(shape, parallel, [&](char* const* at, char* const*) {
        row(at[0], at[1], at[2], at[3], r, shape.n, transposed);
    });
}

}  // namespace

OperatorList rotary_operators() {
    static constexpr Operator all[] = {
        {"apply_rotary",
         "apply_rotary(Tensor x, Tensor cos, Tensor sin, bool interleaved=False, bool "
         "transposed=False, *, int grain=0, int reading=0) -> Tensor",
         "tttbbgr", plan, compute},
    };
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
