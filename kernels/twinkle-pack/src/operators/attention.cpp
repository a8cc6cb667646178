// Scaled dot product attention on a CPU.
#include <algorithm>

#include "isa/functions.h"
#include "operators/families.h"
#include "operators/parts.h"
#include "operators/scratch.h"

namespace twinkle_pack {
namespace {

enum Tensors { query_at, key_at, value_at, mask_at };
enum Numbers { scale_at, causal_at, grouped_at };

// Of four dimensions, and dense along the last.
bool is_readable(const View& view, int scalar_type) {
    return view.dims == 4 && view.scalar_type == scalar_type &&
           (view.sizes[3] <= 1 || view.strides[3] == 1);
}

// Keys and values fit the queries, and each other.
bool fit(const View& query, const View& key, const View& value, bool grouped) {
    const int64_t* const sizes = key.sizes;
    if (!std::equal(sizes, sizes + 4, value.sizes) || sizes[0] != query.sizes[0]) return false;
    if (sizes[3] != query.sizes[3] || sizes[1] < 1) return false;
    return grouped ? query.sizes[1] % sizes[1] == 0 : query.sizes[1] == sizes[1];
}

// Its strides for [batch, head, row], 0 where it is the same for all.
bool set_mask(const View& mask, const View& query, int64_t columns, AttentionShape& shape) {
    if (!mask.is_there()) return true;
    shape.mask_kind =
        mask.scalar_type == scalar_type_bool ? AttentionMask::kept : AttentionMask::added;
    if (shape.mask_kind == AttentionMask::added && mask.scalar_type != query.scalar_type)
        return false;
    if (mask.dims != 2 && mask.dims != 4) return false;
    const int64_t last = mask.dims - 1;
    if (mask.sizes[last] != columns || (columns > 1 && mask.strides[last] != 1)) return false;
    for (int64_t d = 0; d < 3; ++d) {
        const int64_t at = d + mask.dims - 4;
        if (at < 0 || mask.sizes[at] == 1) continue;
        if (mask.sizes[at] != query.sizes[d]) return false;
        shape.mask[d] = mask.strides[at];
    }
    return true;
}

// False: LibTorch's is to be used.
bool set_shape(const Inputs& in, AttentionShape& shape) {
    const View &query = in.tensors[query_at], &key = in.tensors[key_at];
    const View &value = in.tensors[value_at], &mask = in.tensors[mask_at];
    if (!is_supported(query.scalar_type)) return false;
    for (const View* one : {&query, &key, &value})
        if (!is_readable(*one, query.scalar_type) || one->elements() == 0) return false;
    if (!fit(query, key, value, in.numbers[grouped_at] != 0)) return false;
    shape.batches = query.sizes[0];
    shape.heads = query.sizes[1];
    shape.heads_each = shape.heads / key.sizes[1];
    shape.rows = query.sizes[2];
    shape.columns = key.sizes[2];
    shape.width = query.sizes[3];
    std::copy_n(query.strides, 3, shape.query);
    std::copy_n(key.strides, 3, shape.key);
    std::copy_n(value.strides, 3, shape.value);
    shape.scale = static_cast<float>(in.numbers[scale_at]);
    shape.is_causal = in.numbers[causal_at] != 0;
    if (shape.is_causal && mask.is_there()) return false;
    return shape.width <= attention_width && set_mask(mask, query, shape.columns, shape);
}

bool serves(const Inputs& in) {
    AttentionShape shape{};
    if (!set_shape(in, shape)) return false;
    const RowFunctions& functions = row_functions();
    const int dtype = static_cast<int>(dtype_of(in.tensors[query_at]));
    return functions.attention[dtype] && shape.rows >= functions.attention_least_rows[dtype];
}

void plan(const char*, const Inputs& in, Plan& plan) {
    for (const int tensor : {query_at, key_at, value_at, mask_at}) plan.read_in_place(tensor);
    const View& query = in.tensors[query_at];
    plan.order = Order::keeping_rows(query);
    plan.add(query, dtype_of(query));
}

struct Work {
    AttentionShape shape;
    Attend attend;
    const void *query, *key, *value, *mask;
    void* result;
    int64_t size, mask_size;  // of an element
    int64_t parts, each;      // of the rows

    // As few parts as can be, unless with more of them threads have more equal ones.
    void divide(int64_t threads) {
        constexpr int64_t tile = 12, of_a_part = 12;  // copying keys, in rows
        const int64_t heads = shape.batches * shape.heads;
        const int64_t least = (shape.rows + attention_rows - 1) / attention_rows;
        const int64_t most = std::min(shape.rows / tile, least + 2 * threads - 1);
        const auto rows_of = [&](int64_t some) { return (shape.rows + some - 1) / some; };
        each = rows_of(parts_of_least_time(least, most, [&](int64_t some) {
            const int64_t rounds = (heads * some + threads - 1) / threads;
            return static_cast<double>(rounds * (rows_of(some) + of_a_part));
        }));
        parts = rows_of(each);
    }

    static void run(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        const AttentionShape& shape = work.shape;
        const auto moved = [](const void* from, int64_t elements, int64_t size) {
            return static_cast<const char*>(from) + elements * size;
        };
        AttentionPiece piece{};
        piece.shape = &shape;
        piece.scratch = scratch(attention_scratch);
        for (int64_t i = begin; i < end; ++i) {
            const int64_t head = i / work.parts % shape.heads;
            const int64_t batch = i / work.parts / shape.heads, key = head / shape.heads_each;
            const auto start = [batch](const int64_t(&strides)[3], int64_t at) {
                return batch * strides[0] + at * strides[1];
            };
            piece.query = moved(work.query, start(shape.query, head), work.size);
            piece.key = moved(work.key, start(shape.key, key), work.size);
            piece.value = moved(work.value, start(shape.value, key), work.size);
            if (work.mask) piece.mask = moved(work.mask, start(shape.mask, head), work.mask_size);
            piece.result = static_cast<char*>(work.result) + start(shape.result, head) * work.size;
            piece.begin = i % work.parts * work.each;
            piece.end = std::min(piece.begin + work.each, shape.rows);
            work.attend(piece);
        }
    }
};

void compute(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    Work work{};
    set_shape(in, work.shape);
    std::copy_n(plan.results[0].strides, 3, work.shape.result);
    const DType dtype = dtype_of(in.tensors[query_at]);
    work.attend = row_functions().attention[static_cast<int>(dtype)];
    work.query = in.tensors[query_at].data;
    work.key = in.tensors[key_at].data;
    work.value = in.tensors[value_at].data;
    work.mask = in.tensors[mask_at].is_there() ? in.tensors[mask_at].data : nullptr;
    work.result = results[0];
    work.size = element_size(dtype);
    work.mask_size = work.shape.mask_kind == AttentionMask::kept ? 1 : work.size;
    work.divide(std::max<int64_t>(1, parallel.threads));
    const AttentionShape& shape = work.shape;
    const int64_t products = work.each * shape.columns * shape.width * 2;
    parallel(shape.batches * shape.heads * work.parts,
             std::max<int64_t>(1, rules::grain_products / products), Work::run, &work);
}

constexpr Operator attention() {
    Operator op{"attention",
                "attention(Tensor query, Tensor key, Tensor value, Tensor? mask, float scale, "
                "bool causal, bool grouped) -> Tensor?",
                "tttofbb",
                plan,
                compute,
                serves};
    op.may_decline = true;
    return op;
}

}  // namespace

OperatorList attention_operators() {
    static constexpr Operator all[] = {attention()};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
