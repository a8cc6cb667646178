// Divides the work of an operator over rows and threads.
#include "operators.h"

#include <algorithm>
#include <vector>

#include "memory.h"
#include "row_functions.h"
#include "rows.h"

namespace twinkle_pack {
namespace {

// Less work than this is not worth waking another thread (elements; found by measuring).
constexpr int64_t rms_norm_grain = 16384;
constexpr int64_t silu_mul_grain = 16384;
constexpr int64_t silu_mul_block = 1024;
// The gradient of a weight is added up for at most so many parts of the rows at the same time.
constexpr int64_t most_parts = 32;

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

struct RmsNormBackwardWork {
    RmsNormBackward functions;
    Rows grad, x;
    const void* weight;
    char* grad_x;
    char* grad_weight;
    double* sums;  // [parts][n]
    int64_t rows, n, part_rows, parts, x_row_bytes;
    double eps;

    // The parts do not depend on the threads, so neither do the sums.
    static void run(int64_t begin, int64_t end, void* context) {
        const auto& op = *static_cast<const RmsNormBackwardWork*>(context);
        for (int64_t part = begin; part < end; ++part) {
            const int64_t stop = std::min((part + 1) * op.part_rows, op.rows);
            for (int64_t row = part * op.part_rows; row < stop; ++row)
                op.functions.row(op.grad[row], op.x[row], op.weight,
                                 op.grad_x + row * op.x_row_bytes, op.sums + part * op.n, op.n,
                                 op.eps);
        }
    }

    static void store(int64_t begin, int64_t end, void* context) {
        const auto& op = *static_cast<const RmsNormBackwardWork*>(context);
        op.functions.store(op.sums, op.parts, op.n, begin, end, op.grad_weight);
    }
};

struct SiluMulBackwardWork {
    SiluMulBackwardRow function;
    Rows grad, gate, up;
    char* grad_gate;
    char* grad_up;
    int64_t n, elements, element_size;

    static void run(int64_t begin, int64_t end, void* context) {
        const auto& op = *static_cast<const SiluMulBackwardWork*>(context);
        int64_t at = begin * silu_mul_block;
        const int64_t stop = std::min(end * silu_mul_block, op.elements);
        while (at < stop) {
            const int64_t row = at / op.n, column = at % op.n;
            const int64_t count = std::min(op.n - column, stop - at);
            const int64_t offset = column * op.element_size;
            op.function(op.grad[row] + offset, op.gate[row] + offset, op.up[row] + offset,
                        op.grad_gate + at * op.element_size, op.grad_up + at * op.element_size,
                        count);
            at += count;
        }
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

void rms_norm_backward(const View& grad, const View& x, const View& weight, double eps,
                       void* grad_x, void* grad_weight, ParallelFor parallel) {
    const int64_t n = x.sizes[x.dims - 1];
    if (n == 0) return;
    const int x_type = index_of(x.scalar_type), weight_type = index_of(weight.scalar_type);
    const int64_t x_size = element_size(static_cast<DType>(x_type));
    const int64_t rows = x.elements() / n;
    const int64_t least_rows = std::max<int64_t>(1, rms_norm_grain / n);
    const int64_t part_rows = std::max((rows + most_parts - 1) / most_parts, least_rows);
    const int64_t parts = (rows + part_rows - 1) / part_rows;
    std::vector<double> sums(static_cast<size_t>(parts * n));
    RmsNormBackwardWork op{row_functions().rms_norm_backward[x_type][weight_type],
                           Rows(grad, element_size(static_cast<DType>(index_of(grad.scalar_type)))),
                           Rows(x, x_size),
                           weight.data,
                           static_cast<char*>(grad_x),
                           static_cast<char*>(grad_weight),
                           sums.data(),
                           rows,
                           n,
                           part_rows,
                           parts,
                           n * x_size,
                           eps};
    prefer_huge_pages(grad_x, rows * n * x_size);
    parallel(parts, 1, RmsNormBackwardWork::run, &op);
    parallel(n, rms_norm_grain, RmsNormBackwardWork::store, &op);
}

void silu_mul_backward(const View& grad, const View& gate, const View& up, void* grad_gate,
                       void* grad_up, ParallelFor parallel) {
    const int64_t elements = gate.elements();
    if (elements == 0) return;
    const int type = index_of(gate.scalar_type);
    const int64_t size = element_size(static_cast<DType>(type));
    SiluMulBackwardWork op{row_functions().silu_mul_backward[type],
                           Rows(grad, size),
                           Rows(gate, size),
                           Rows(up, size),
                           static_cast<char*>(grad_gate),
                           static_cast<char*>(grad_up),
                           gate.dims == 0 ? 1 : gate.sizes[gate.dims - 1],
                           elements,
                           size};
    prefer_huge_pages(grad_gate, elements * size);
    prefer_huge_pages(grad_up, elements * size);
    parallel((elements + silu_mul_block - 1) / silu_mul_block, silu_mul_grain / silu_mul_block,
             SiluMulBackwardWork::run, &op);
}

}  // namespace twinkle_pack
