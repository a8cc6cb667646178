// Rotary position embedding of the first `rotated` elements of each row; the rest is passed
// through.
#include "cuda/families.h"
#include "cuda/launches.h"
#include "cuda/launching.h"
#include "cuda/places.h"

namespace twinkle_pack::cuda {
namespace {

constexpr unsigned threads = 128;

// How a row is divided: pairs of vectors that rotate together, then single vectors.
struct Turns {
    uint32_t
        pairs;  // items of a row that turn; an item is two vectors where the halves turn, else one
    uint32_t items;  // all items of a row
    uint64_t total;
    bool transposed;
};

template <class C, Reading reading = Reading::cached, class Number, int n>
__device__ __forceinline__ void load_numbers(const char* from, Number (&values)[n]) {
    const Pack<C, n> pack = load<C, n, reading>(from);
#pragma unroll
    for (int i = 0; i < n; ++i) values[i] = number_at(pack, i);
}

// Tensors: x, cos, sin, result.
template <class X, class C, class R, bool neighbours, Reading reading>
__global__ void __launch_bounds__(threads)
    rotate_vectors(Places<4, uint32_t, few_dims> places, Divider<uint32_t> row_items, Turns turns) {
    using V = typename ComputedIn<R>::type;
    using Number = typename V::reg;
    constexpr int n = vector_bytes / sizeof(X);
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t row = row_items.quotient(item);
    uint32_t place = item - row * turns.items;
    char* at[4];
    places.find_row(row, at);
    wait_for_earlier();
    let_next_begin();
    if (item >= turns.total) return;
    const auto x_at = [&](uint32_t i) { return at[0] + static_cast<uint64_t>(i) * vector_bytes; };
    const auto table_at = [&](int k, uint32_t i) {
        return at[k] + static_cast<uint64_t>(i) * (n * sizeof(C));
    };
    const auto result_at = [&](uint32_t i) {
        return at[3] + static_cast<uint64_t>(i) * (n * sizeof(R));
    };
    if (place >= turns.pairs) {
        if constexpr (!neighbours) place += turns.pairs;  // behind both halves
        Number values[n];
        load_numbers<X, reading>(x_at(place), values);
        store(result_at(place), packed<R>(values));
        return;
    }
    if constexpr (neighbours) {
        Number x[n], c[n], s[n];
        load_numbers<X, reading>(x_at(place), x);
        load_numbers<C>(table_at(1, place), c);
        load_numbers<C>(table_at(2, place), s);
#pragma unroll
        for (int i = 0; i < n; i += 2) {
            const Rotated<V> turned(x[i], x[i + 1], c[i], c[i + 1], s[i], s[i + 1],
                                    turns.transposed);
            x[i] = turned.first, x[i + 1] = turned.second;
        }
        store(result_at(place), packed<R>(x));
    } else {
        const uint32_t other = place + turns.pairs;
        Number x1[n], x2[n], c1[n], c2[n], s1[n], s2[n];
        load_numbers<X, reading>(x_at(place), x1);
        load_numbers<X, reading>(x_at(other), x2);
        load_numbers<C>(table_at(1, place), c1);
        load_numbers<C>(table_at(1, other), c2);
        load_numbers<C>(table_at(2, place), s1);
        load_numbers<C>(table_at(2, other), s2);
#pragma unroll
        for (int i = 0; i < n; ++i) {
            const Rotated<V> turned(x1[i], x2[i], c1[i], c2[i], s1[i], s2[i], turns.transposed);
            x1[i] = turned.first, x2[i] = turned.second;
        }
        store(result_at(place), packed<R>(x1));
        store(result_at(other), packed<R>(x2));
    }
}

struct AnyRotary {
    DType x, table, result;
    uint64_t half, rotated, n;
    bool neighbours, transposed;
};

// Any dtypes, strides and sizes. An item is a pair that rotates, or an element that does not.
template <class Number>
__global__ void __launch_bounds__(threads)
    rotate_any(Places<4, uint64_t, all_dims> places, uint64_t row_items, uint64_t total,
               AnyRotary all) {
    using V = Scalar<Number, false>;
    const uint64_t item = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (item >= total) return;
    const uint64_t row = item / row_items, place = item - row * row_items;
    char* at[4];
    places.find_row(row, at);
    const auto address = [&](int k, uint64_t i) {
        return at[k] + static_cast<int64_t>(i) * places.item_step[k];
    };
    if (place >= all.half) {
        const uint64_t i = place + all.half;
        store_as<Number>(all.result, address(3, i), load_as<Number>(all.x, address(0, i)));
        return;
    }
    const uint64_t i = all.neighbours ? 2 * place : place;
    const uint64_t j = all.neighbours ? i + 1 : i + all.half;
    const auto table = [&](int k, uint64_t e) { return load_as<Number>(all.table, address(k, e)); };
    const Rotated<V> turned(load_as<Number>(all.x, address(0, i)),
                            load_as<Number>(all.x, address(0, j)), table(1, i), table(1, j),
                            table(2, i), table(2, j), all.transposed);
    store_as<Number>(all.result, address(3, i), turned.first);
    store_as<Number>(all.result, address(3, j), turned.second);
}

using RotaryShape = RowShape<4>;

template <class X, class C, class R>
bool launch_vectors(const RotaryShape& shape, int64_t rotated, bool neighbours, bool transposed,
                    const Queue& queue) {
    constexpr int n = vector_bytes / sizeof(X);
    const int64_t turning = neighbours ? rotated : rotated / 2;
    if (!has_few(shape, shape.rows * (shape.n / n)) || !has_vectors(shape, n) || turning % n != 0)
        return false;
    Turns turns;
    turns.pairs = static_cast<uint32_t>(turning / n);
    turns.items = static_cast<uint32_t>((shape.n - (neighbours ? 0 : turning)) / n);
    turns.total = static_cast<uint64_t>(shape.rows) * turns.items;
    turns.transposed = transposed;
    const Places<4, uint32_t, few_dims> places(shape, n);
    const Card here = card(queue.device);
    const uint64_t results = static_cast<uint64_t>(shape.rows * shape.n);
    with_reading<true>(reading_beside(results * sizeof(R), here, queue.config), [&](auto how) {
        constexpr Reading reading = decltype(how)::value;
        launch_early(queue.stream, here,
                     neighbours ? rotate_vectors<X, C, R, true, reading>
                                : rotate_vectors<X, C, R, false, reading>,
                     Grid{quotient_up(turns.total, threads)}, threads, 1, places,
                     Divider<uint32_t>(turns.items), turns);
    });
    return true;
}

template <class X>
bool launch_half(DType table, const RotaryShape& shape, int64_t rotated, bool neighbours,
                 bool transposed, const Queue& queue) {
    return table == DType::float32
               ? launch_vectors<X, float, float>(shape, rotated, neighbours, transposed, queue)
               : launch_vectors<X, X, X>(shape, rotated, neighbours, transposed, queue);
}

bool launch_fast(DType x, DType table, const RotaryShape& shape, int64_t rotated, bool neighbours,
                 bool transposed, const Queue& queue) {
    const bool half = x == DType::bfloat16 || x == DType::float16;
    if (x != table && !(half && table == DType::float32)) return false;
    switch (x) {
        case DType::float32:
            return launch_vectors<float, float, float>(shape, rotated, neighbours, transposed,
                                                       queue);
        case DType::bfloat16:
            return launch_half<BFloat16>(table, shape, rotated, neighbours, transposed, queue);
        case DType::float16:
            return launch_half<Float16>(table, shape, rotated, neighbours, transposed, queue);
        default: return false;
    }
}

template <class Number>
void launch_any(const RotaryShape& shape, const AnyRotary& all, const Queue& queue) {
    check_dims(shape);
    const Places<4, uint64_t, all_dims> places(shape, 1);
    const uint64_t row_items = all.n - all.half;
    const uint64_t total = static_cast<uint64_t>(shape.rows) * row_items;
    launch(queue.stream, rotate_any<Number>, Grid{quotient_up(total, threads)}, threads, places,
           row_items, total, all);
}

// Treats cos as a tensor of x's dimensions.
Placed broadcast(const View& cos, const View& x, int64_t* strides) {
    const int64_t missing = x.dims - cos.dims;
    for (int64_t d = 0; d < x.dims; ++d)
        strides[d] = d < missing || cos.sizes[d - missing] == 1 ? 0 : cos.strides[d - missing];
    // The last dimension is not broadcast.
    strides[x.dims - 1] = cos.strides[cos.dims - 1];
    Placed place = placed(cos);
    place.strides = strides;
    return place;
}

void apply_rotary(const Inputs& in, const Plan& plan, void* const* results, const Queue& queue) {
    const View &x = in.tensors[0], &cos = in.tensors[1], &sin = in.tensors[2];
    if (x.elements() == 0) return;
    const bool neighbours = in.numbers[0] != 0, transposed = in.numbers[1] != 0;
    int64_t cos_strides[most_dims], sin_strides[most_dims];
    const RotaryShape shape(x.sizes, plan.order,
                            {placed(x), broadcast(cos, x, cos_strides),
                             broadcast(sin, x, sin_strides), placed(plan.results[0], results[0])},
                            false);
    const int64_t rotated = cos.last_size();
    const DType dtype = dtype_of(x), table = dtype_of(cos), result = plan.results[0].dtype;
    if (launch_fast(dtype, table, shape, rotated, neighbours, transposed, queue)) return;
    const AnyRotary all{dtype,
                        table,
                        result,
                        static_cast<uint64_t>(rotated / 2),
                        static_cast<uint64_t>(rotated),
                        static_cast<uint64_t>(shape.n),
                        neighbours,
                        transposed};
    if (result == DType::float64)
        launch_any<double>(shape, all, queue);
    else
        launch_any<float>(shape, all, queue);
}

}  // namespace

KernelList rotary_kernels() {
    static const Kernel all[] = {{"apply_rotary", apply_rotary}};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack::cuda
