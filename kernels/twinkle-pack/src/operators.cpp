// Divides the work of an operator over rows and threads.
#include "operators.h"

#include <algorithm>

#include "memory.h"
#include "row_functions.h"
#include "rows.h"

namespace twinkle_pack {
namespace {

// Less work than this is not worth waking another thread (elements; found by measuring).
constexpr int64_t rms_norm_grain = 16384;
constexpr int64_t silu_mul_grain = 16384;
constexpr int64_t silu_mul_block = 1024;

int index_of(int scalar_type) {
    for (int i = 0; i < dtype_count; ++i)
        if (scalar_type_of(static_cast<DType>(i)) == scalar_type) return i;
    return 0;  // the checks refuse every other dtype
}

struct RmsNorm {
    RmsNormRow function;
    Rows x;
    const void* weight;
    char* result;
    int64_t n, result_row_bytes;
    double eps;

    static void run(int64_t begin, int64_t end, void* context) {
        const RmsNorm& op = *static_cast<const RmsNorm*>(context);
        for (int64_t row = begin; row < end; ++row)
            op.function(op.x[row], op.x[row + 1 < end ? row + 1 : row], op.weight,
                        op.result + row * op.result_row_bytes, op.n, op.eps);
    }
};

struct SiluMul {
    SiluMulRow function;
    void (*fence)();
    bool stream;
    Rows gate, up;
    char* result;
    int64_t n, elements, element_size;

    // A block is a number of elements in the result's order, whatever the length of a row.
    static void run(int64_t begin, int64_t end, void* context) {
        const SiluMul& op = *static_cast<const SiluMul*>(context);
        int64_t at = begin * silu_mul_block;
        const int64_t stop = std::min(end * silu_mul_block, op.elements);
        while (at < stop) {
            const int64_t row = at / op.n, column = at % op.n;
            const int64_t count = std::min(op.n - column, stop - at);
            op.function(op.gate[row] + column * op.element_size,
                        op.up[row] + column * op.element_size, op.result + at * op.element_size,
                        count, op.stream);
            at += count;
        }
        if (op.stream) op.fence();
    }
};

}  // namespace

bool must_copy(const View& view) {
    return !Rows(view, 1).readable();
}

void rms_norm(const View& x, const View& weight, double eps, void* result, ParallelFor parallel) {
    const int64_t elements = x.elements();
    if (elements == 0) return;
    const DType dtype = check_rms_norm(x, weight);
    const int x_type = index_of(x.scalar_type), weight_type = index_of(weight.scalar_type);
    const int64_t n = x.sizes[x.dims - 1];
    const int64_t x_size = element_size(static_cast<DType>(x_type));
    RmsNorm op{row_functions().rms_norm[x_type][weight_type],
               Rows(x, x_size),
               weight.data,
               static_cast<char*>(result),
               n,
               n * element_size(dtype),
               eps};
    prefer_huge_pages(result, elements * element_size(dtype));
    parallel(elements / n, std::max<int64_t>(1, rms_norm_grain / n), RmsNorm::run, &op);
}

void silu_mul(const View& gate, const View& up, void* result, ParallelFor parallel) {
    const int64_t elements = gate.elements();
    if (elements == 0) return;
    const int type = index_of(gate.scalar_type);
    const int64_t size = element_size(static_cast<DType>(type));
    const RowFunctions& functions = row_functions();
    SiluMul op{functions.silu_mul[type],
               functions.fence,
               exceeds_cache(3 * elements * size),
               Rows(gate, size),
               Rows(up, size),
               static_cast<char*>(result),
               gate.dims == 0 ? 1 : gate.sizes[gate.dims - 1],
               elements,
               size};
    if (op.gate.dense(op.n * size) && op.up.dense(op.n * size)) op.n = elements;
    prefer_huge_pages(result, elements * size);
    parallel((elements + silu_mul_block - 1) / silu_mul_block, silu_mul_grain / silu_mul_block,
             SiluMul::run, &op);
}

}  // namespace twinkle_pack
