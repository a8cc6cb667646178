// Weights of 8 and 4 bits made numbers again, linear layers that LibTorch computes with those, and
// rows of x as numbers of 8 bits.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "fp8.h"
#include "isa/functions.h"
#include "operators/checks.h"
#include "operators/families.h"
#include "operators/packed_weight.h"

namespace twinkle_pack {
namespace {

#include "loops/half_conversion.h"

void store_as(DType dtype, void* to, int64_t at, float value) {
    switch (dtype) {
        case DType::bfloat16: static_cast<BFloat16*>(to)[at] = from_float<BFloat16>(value); break;
        case DType::float16: static_cast<Float16*>(to)[at] = from_float<Float16>(value); break;
        default: static_cast<float*>(to)[at] = value;
    }
}
float load_as(DType dtype, const void* from, int64_t at) {
    switch (dtype) {
        case DType::bfloat16: return to_float(static_cast<const BFloat16*>(from)[at]);
        case DType::float16: return to_float(static_cast<const Float16*>(from)[at]);
        default: return static_cast<const float*>(from)[at];
    }
}

template <Packed packed>
void plan_unpack(const char* name, const Inputs& in, Plan& plan) {
    const View &x = in.tensors[0], &values = in.tensors[1];
    const DType dtype = packed_dtype(name, x);
    check_packed(name, x, values, in.tensors[2], packed);
    plan.order = Order::identity(2);
    plan.add_with_last(values, x.last_size(), dtype);
    for (int i = 0; i < 3; ++i) plan.read_in_place(i);
}

struct Unpacking {
    Packed packed;
    DType dtype;
    const uint8_t* values;
    const float* scales;
    int64_t columns, depth;
    void* result;

    // Of families.h.
    float of_blocks(int64_t column, int64_t at) const {
        const bool pairs = packed == Packed::int4;
        const int64_t block = column / bits_block, first = block * bits_block;
        const int64_t width = std::min(bits_block, columns - first), groups = depth / bits_group;
        const int64_t group = at / bits_group, term = at % bits_group;
        const int64_t of_group = pairs ? bits_group / 2 : bits_group;
        const int64_t byte = term % of_group;
        const uint8_t both = values[(first * groups + group * width) * of_group +
                                    (byte / 4 * width + column - first) * 4 + byte % 4];
        const float scale = scales[first * groups + group * width + column - first];
        const int value = pairs ? (both >> (term / of_group * 4) & 15) - 8 : both - 128;
        return static_cast<float>(value) * scale;
    }

    static void rows(int64_t begin, int64_t end, void* context) {
        const Unpacking& my = *static_cast<const Unpacking*>(context);
        for (int64_t c = begin; c < end; ++c)
            for (int64_t k = 0; k < my.depth; ++k) {
                const float value = my.packed == Packed::fp8
                                        ? fp8_to_float(my.values[c * my.depth + k]) * my.scales[c]
                                        : my.of_blocks(c, k);
                store_as(my.dtype, my.result, c * my.depth + k, value);
            }
    }
};

template <Packed packed>
void unpack(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    const Result& result = plan.results[0];
    Unpacking all{packed,
                  result.dtype,
                  static_cast<const uint8_t*>(in.tensors[1].data),
                  static_cast<const float*>(in.tensors[2].data),
                  result.sizes[0],
                  result.sizes[1],
                  results[0]};
    parallel(all.columns, std::max<int64_t>(1, 16384 / all.depth), Unpacking::rows, &all);
}

void plan_linear_fp8(const char* name, const Inputs& in, Plan& plan) {
    const View &x = in.tensors[0], &values = in.tensors[1];
    const DType dtype = packed_dtype(name, x);
    check_packed(name, x, values, in.tensors[2], Packed::fp8);
    check_bias(name, x, values, in.tensors[3]);
    plan.order = Order::identity(x.dims);
    plan.add_with_last(x, values.sizes[0], dtype);
}
// CPUs have nothing for such numbers.
bool never(const Inputs&) {
    return false;
}

void plan_round(const char* name, const Inputs& in, Plan& plan) {
    const View& x = in.tensors[0];
    packed_dtype(name, x);
    if (x.dims != 2 || !x.is_contiguous()) refuse(name, "x is no dense matrix: " + shape_text(x));
    plan.order = Order::identity(2);
    plan.add(x, DType::fp8);
    plan.add_with_last(x, 1, DType::float32);
}

void round_rows(const Inputs& in, const Plan&, void* const* results, ParallelFor) {
    const View& x = in.tensors[0];
    const DType dtype = dtype_of(x);
    for (int64_t r = 0; r < x.sizes[0]; ++r) {
        const int64_t begin = r * x.sizes[1], end = begin + x.sizes[1];
        float largest = 0;
        for (int64_t i = begin; i < end; ++i) {
            const float magnitude = std::fabs(load_as(dtype, x.data, i));
            if (magnitude > largest) largest = magnitude;  // not NaN, which stays one
        }
        const bool nothing = !(largest > 1e-30f);  // its inverse would not be finite
        const float inverse = nothing ? 0 : fp8_largest / largest;
        static_cast<float*>(results[1])[r] = nothing ? 0 : largest / fp8_largest;
        for (int64_t i = begin; i < end; ++i)
            static_cast<uint8_t*>(results[0])[i] =
                fp8_from_float(load_as(dtype, x.data, i) * inverse);
    }
}

}  // namespace

OperatorList packing_operators() {
    static constexpr const char* unpacking = "ttt";
#define UNPACK(name) name, name "(Tensor x, Tensor values, Tensor scales) -> Tensor"
    static constexpr Operator all[] = {
        {UNPACK("unpack_int8"), unpacking, plan_unpack<Packed::int8>, unpack<Packed::int8>},
        {UNPACK("unpack_int4"), unpacking, plan_unpack<Packed::int4>, unpack<Packed::int4>},
        {UNPACK("unpack_fp8"), unpacking, plan_unpack<Packed::fp8>, unpack<Packed::fp8>},
        {"linear_fp8",
         "linear_fp8(Tensor x, Tensor values, Tensor scales, Tensor? bias) -> Tensor",
         "ttto",
         plan_linear_fp8,
         nullptr,
         never,
         {1, nullptr, "unpack_fp8", "round_to_fp8"}},
        {"round_to_fp8", "round_to_fp8(Tensor x) -> (Tensor, Tensor)", "t", plan_round,
         round_rows}};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
