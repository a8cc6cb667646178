#pragma once
// What the files of the typed functions (twinkle/ops.h) share: types, the executor, LibTorch's
// activations, and the table by which recorded calls find their operation.

#include "runtime/tuning/pack_operation.h"
#include "runtime/tuning/recorded_arguments.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace twinkle::ops {

using Tensor = at::Tensor;
using Maybe = std::optional<Tensor>;
using Grads = std::vector<Tensor>;
using Pair = std::tuple<Tensor, Tensor>;

constexpr std::int64_t last = -1;

const Executor& executor();

// Operators are named after their activation: "silu", "linear_silu", "silu_mul".
struct Silu {
    static constexpr const char* name = "silu";
    static Tensor of(const Tensor& x) { return at::silu(x); }
};
struct Gelu {
    static constexpr const char* name = "gelu";
    static Tensor of(const Tensor& x) { return at::gelu(x); }
};
struct GeluTanh {
    static constexpr const char* name = "gelu_tanh";
    static Tensor of(const Tensor& x) { return at::gelu(x, "tanh"); }
};
struct Relu {
    static constexpr const char* name = "relu";
    static Tensor of(const Tensor& x) { return at::relu(x); }
};

using TuneTable =
    std::map<std::string, std::function<Measurement(const Invocation&, const AutotuneOptions&)>>;

void list_activations(TuneTable& table);
void list_norms(TuneTable& table);
void list_rotary(TuneTable& table);
void list_linear(TuneTable& table);
void list_images(TuneTable& table);
void list_attention(TuneTable& table);

// How a recorded call of an operation is tuned. `fit` makes arguments that belong together of those
// with sizes in buckets.
template <class Op>
void list(TuneTable& table, const Op& operation,
          void (*fit)(typename Op::Arguments& arguments) = nullptr) {
    table[operation.name()] = [&operation, fit](const Invocation& invocation,
                                                const AutotuneOptions& options) {
        auto arguments =
            runtime::RecordedArguments(invocation).template all<typename Op::Arguments>();
        if (fit != nullptr) {
            fit(arguments);
        }
        if (invocation.mode == RunMode::forward) {
            std::get<0>(arguments).set_requires_grad(true);
        }
        return autotune(executor(), operation, arguments, options).measurement;
    };
}

}  // namespace twinkle::ops
