// Fills in the table for one vector type and the dtypes that it serves.

template <class T>
constexpr int index_of = __is_same(T, float)      ? 0
                         : __is_same(T, BFloat16) ? 1
                         : __is_same(T, Float16)  ? 2
                         : __is_same(T, double)   ? 3
                                                  : no_weight;

template <bool first, class A, class B>
struct Choose {
    using type = A;
};
template <class A, class B>
struct Choose<false, A, B> {
    using type = B;
};

// The dtype to which PyTorch promotes two; None does not count.
template <class A, class B>
struct Promoted {
    static constexpr bool same = __is_same(A, B) || __is_same(B, None);
    static constexpr bool wide = __is_same(A, double) || __is_same(B, double);
    using type = typename Choose<same, A, typename Choose<wide, double, float>::type>::type;
};

// `Gate`: the vector of a gate's gradient.
template <class V, class Gate, Activation name, class A, class T>
void add_activation(RowFunctions& to) {
    const int a = static_cast<int>(name);
    to.unary[a][index_of<T>] = unary_row<V, A, T>;
    to.unary_backward[a][index_of<T>] = unary_backward_row<V, A, T>;
    if constexpr (static_cast<int>(name) < gate_count) {
        to.gated[a][index_of<T>] = gated_row<V, A, T>;
        to.gated_backward[a][index_of<T>] = gated_backward_row<Gate, A, T>;
    }
}

// `Precise`: the vector for computations that float would round too often: gelu's gradient where it
// gates, and the sum of the partial gradients of a weight.
template <class V, class Precise, class T>
void add_elementwise(RowFunctions& to) {
    add_activation<V, V, Activation::silu, Silu, T>(to);
    add_activation<V, Precise, Activation::gelu, Gelu, T>(to);
    add_activation<V, V, Activation::gelu_tanh, GeluTanh, T>(to);
    add_activation<V, V, Activation::gelu_fast, GeluFast, T>(to);
    add_activation<V, V, Activation::gelu_quick, GeluQuick, T>(to);
    add_activation<V, V, Activation::relu, Relu, T>(to);
    to.add[index_of<T>] = add_row<V, T>;
    to.store_sums[index_of<T>] = store_weight_gradient<Precise, T>;
}

template <class V, class X, class W>
void add_rms_norm(RowFunctions& to) {
    constexpr int x = index_of<X>, w = index_of<W>;
    using R = typename Promoted<X, W>::type;
    to.rms_norm[x][w] = rms_norm_row<V, X, W, R, true>;
    to.rms_norm_last[x][w] = rms_norm_row<V, X, W, X, false>;
    to.rms_norm_backward[x][w] = rms_norm_backward_row<V, X, W, R>;
    to.rms_norm_last_backward[x][w] = rms_norm_backward_row<V, X, W, X>;
}

template <class V, class X, class W>
void add_layer_norm(RowFunctions& to) {
    constexpr int x = index_of<X>, w = index_of<W>;
    to.layer_norm[x][w] = layer_norm_row<V, X, W>;
    to.layer_norm_backward[x][w] = layer_norm_backward_row<V, X, W>;
}

template <class V, class X, class C>
void add_rotary(RowFunctions& to) {
    constexpr int x = index_of<X>, c = index_of<C>;
    using R = typename Promoted<X, C>::type;
    to.rotary[x][c] = rotary_row<V, X, C, R, false>;
    to.rotary_pairs[x][c] = rotary_row<V, X, C, R, true>;
}

// Rows of X with weights and tables of any of the types.
template <class V, class X, class... Others>
void add_mixed(RowFunctions& to) {
    (add_rms_norm<V, X, Others>(to), ...);
    (add_rotary<V, X, Others>(to), ...);
    add_rms_norm<V, X, None>(to);
    add_layer_norm<V, X, None>(to);
    add_layer_norm<V, X, X>(to);
    if constexpr (sizeof(X) == 2) add_layer_norm<V, X, float>(to);
}

// The functions for vectors of float. Wide is for rows of float32; Double, vectors of double, for
// the steps of float32 that need them.
template <class V, class Double, class Wide = V>
void add_float_functions(RowFunctions& to, const char* isa) {
    to.isa = isa;
    to.fence = V::fence;
    add_elementwise<V, Double, float>(to);
    add_elementwise<V, V, BFloat16>(to);
    add_elementwise<V, V, Float16>(to);
    add_mixed<Wide, float, float, BFloat16, Float16>(to);
    add_mixed<V, BFloat16, float, BFloat16, Float16>(to);
    add_mixed<V, Float16, float, BFloat16, Float16>(to);
}

// P is a template over Bits.
template <class V, class T, template <Bits> class P>
void add_bits(RowFunctions& to) {
    to.round_row[index_of<T>] = round_row<V, T>;
    to.bits_linear[static_cast<int>(Bits::int8)][index_of<T>] =
        bits_linear<V, T, Bits::int8, P<Bits::int8>>;
    to.bits_linear[static_cast<int>(Bits::int4)][index_of<T>] =
        bits_linear<V, T, Bits::int4, P<Bits::int4>>;
}

// Dot and Outer are templates over T: what multiplies (loops/linear_few.h, loops/conv_dense.h).
template <class V, template <class> class Dot, template <class> class Outer, class T>
void add_linear(RowFunctions& to, LinearBorders borders) {
    to.linear_few[index_of<T>] = linear_few<V, Dot<T>>;
    to.linear_many[index_of<T>] = linear_many<V, Outer<T>>;
    to.linear_borders[index_of<T>] = borders;
}

// Of weights in panels. G: whose groups hold elements as they are in memory.
template <class V, class G>
void add_packed_linear(RowFunctions& to) {
    using T = typename G::T;
    static_assert(G::per_group * sizeof(T) == sizeof(int32_t) && panel_width<G> == panel_columns);
    to.lay_panels[index_of<T>] = lay_panels<G>;
    to.linear_packed[index_of<T>] = linear_packed<V, G>;
    to.panel_group[index_of<T>] = G::per_group;
}

template <class V, template <class> class Outer, class T>
void add_attention(RowFunctions& to, int64_t least_rows) {
    to.attention[index_of<T>] = attention<V, Outer<T>>;
    to.attention_least_rows[index_of<T>] = least_rows;
}

// Where channels lie first.
template <class V, template <class> class Outer, class... T>
void add_convolutions(RowFunctions& to) {
    ((to.conv_dense[index_of<T>] = conv_dense<V, Outer<T>>), ...);
    ((to.conv_depthwise[index_of<T>] = conv_depthwise<V, T>), ...);
    ((to.max_pool[index_of<T>] = max_pool<V, T>), ...);
}

// Where they lie last. M: what multiplies (loops/conv_last_weights.h).
template <class V, class M>
void add_last_convolutions(RowFunctions& to) {
    using T = typename M::T;
    to.conv_last_blocks[index_of<T>] = lay_blocks<V, M>;
    to.conv_last[index_of<T>] = conv_last<V, M>;
    to.conv_last_group[index_of<T>] = M::per_group;
    to.depthwise_last[index_of<T>] = depthwise_last<V, T>;
    to.max_pool_last[index_of<T>] = max_pool_last<V, T>;
}

template <class V, class M>
void add_winograd(RowFunctions& to) {
    to.winograd_weights = winograd_weights<V, M>;
    to.conv_winograd = conv_winograd<V, M>;
}
