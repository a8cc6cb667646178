// Activations of one tensor, and of one times another.

template <class V, class A, class T>
void unary_row(const void* x, void* result, int64_t n, bool stream) {
    map_rows<V>(
        static_cast<T*>(result), n, stream,
        [](typename V::reg value) { return A::template value<V>(value); },
        static_cast<const T*>(x));
}

template <class V, class A, class T>
void unary_backward_row(const void* grad, const void* x, void* grad_x, int64_t n) {
    map<V, false>(
        static_cast<T*>(grad_x), n,
        [](typename V::reg g, typename V::reg value) { return gradient<V, A>(g, value); },
        static_cast<const T*>(grad), static_cast<const T*>(x));
}

template <class V, class A, class T>
void gated_row(const void* gate, const void* up, void* result, int64_t n, bool stream) {
    map_rows<V>(
        static_cast<T*>(result), n, stream,
        [](typename V::reg g, typename V::reg u) { return V::mul(A::template value<V>(g), u); },
        static_cast<const T*>(gate), static_cast<const T*>(up));
}

template <class V, class A, class T>
void gated_backward_row(const void* grad_data, const void* gate_data, const void* up_data,
                        void* grad_gate_data, void* grad_up_data, int64_t n) {
    const T* grad = static_cast<const T*>(grad_data);
    const T* gate = static_cast<const T*>(gate_data);
    const T* up = static_cast<const T*>(up_data);
    T* grad_gate = static_cast<T*>(grad_gate_data);
    T* grad_up = static_cast<T*>(grad_up_data);
    int64_t i = 0;
    for (; i + V::width <= n; i += V::width) {
        const auto g = V::load(grad + i), u = V::load(up + i);
        const Slope<V> slope = A::template slope<V>(V::load(gate + i));
        V::store(grad_gate + i, V::mul(V::mul(g, u), slope.derivative));
        V::store(grad_up + i, V::mul(g, slope.value));
    }
    if (i < n) {
        const auto g = load_tail<V>(grad + i, n - i), u = load_tail<V>(up + i, n - i);
        const Slope<V> slope = A::template slope<V>(load_tail<V>(gate + i, n - i));
        store_tail<V>(grad_gate + i, V::mul(V::mul(g, u), slope.derivative), n - i);
        store_tail<V>(grad_up + i, V::mul(g, slope.value), n - i);
    }
}

template <class V, class T>
void add_row(const void* a, const void* b, void* sum, int64_t n) {
    map<V, false>(
        static_cast<T*>(sum), n, [](typename V::reg x, typename V::reg y) { return V::add(x, y); },
        static_cast<const T*>(a), static_cast<const T*>(b));
}
