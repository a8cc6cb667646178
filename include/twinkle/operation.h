#pragma once
// Operations with configurations, and the executor that gives each call the right one.
//
//     struct Norm : twinkle::Operation<NormCfg> {
//         std::string name() const override { return "my::norm"; }
//         at::Tensor run(const at::Tensor& x, double eps, const NormCfg& cfg) const;
//         NormCfg heuristic_cfg(const twinkle::Invocation&) const override;
//         std::vector<NormCfg> config_space(const twinkle::Invocation&) const override;
//     };
//
//     twinkle::Executor executor(twinkle::ConfigSelectorChain{});
//     at::Tensor y = executor(Norm(), x, 1e-6);               // configuration chosen
//     at::Tensor z = executor(Norm(), x, 1e-6, NormCfg{64});  // this one
//
// An operation that has run_cpu or run_cuda (which serves CUDA and ROCm) is run by it on that
// platform, else by run. All take the call's arguments, then the configuration.
//
// One with gradients of its own has vjp, with configurations of its own (the second parameter of
// Operation): given the gradients of the results and the arguments of the call, one gradient for
// each argument that is a tensor or an optional one (undefined: none):
//
//     std::vector<at::Tensor> vjp(const std::vector<at::Tensor>& grads, const at::Tensor& x,
//                                 double eps, const NormBackwardCfg& cfg) const;
//
// Without vjp, gradients are those of whatever run calls.

#include "twinkle/api.h"
#include "twinkle/invocation.h"
#include "twinkle/tuning_config.h"

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle {

namespace detail {
TWINKLE_API std::uint64_t new_operation_id();

// Its own for every object, copies too: they may have been made to say something else.
class OperationId {
public:
    OperationId() : id_(new_operation_id()) {}
    OperationId(const OperationId&) : OperationId() {}
    OperationId& operator=(const OperationId&) { return *this; }
    std::uint64_t value() const { return id_; }

private:
    std::uint64_t id_;
};
}  // namespace detail

// Thread-safe as far as what derives from it is.
template <Configuration Cfg, Configuration BackwardCfg = Cfg>
class Operation {
public:
    using Config = Cfg;
    using BackwardConfig = BackwardCfg;

    virtual ~Operation() = default;
    // The same for the same computation in every process: "my::norm".
    virtual std::string name() const = 0;
    // What a measurement depends on beside the configuration: change it when the code changes.
    virtual std::string build() const { return "1"; }
    // Serves a call that nobody has measured, from shapes and device alone.
    virtual Cfg heuristic_cfg(const Invocation&) const { return Cfg{}; }
    // Everything worth trying for such a call; the heuristic's is tried in any case.
    virtual std::vector<Cfg> config_space(const Invocation&) const { return {}; }
    virtual BackwardCfg heuristic_backward_cfg(const Invocation&) const { return BackwardCfg{}; }
    virtual std::vector<BackwardCfg> backward_config_space(const Invocation&) const { return {}; }

    std::uint64_t id() const { return id_.value(); }

private:
    detail::OperationId id_;
};

template <class Op>
concept AnOperation =
    std::derived_from<Op, Operation<typename Op::Config, typename Op::BackwardConfig>>;

namespace detail {

// Throws Error(refused).
[[noreturn]] TWINKLE_API void no_code_for(const std::string& operation, std::string_view platform);

template <class Op, class Cfg, class... Args>
auto run_operation(const Op& op, std::string_view platform, const Cfg& cfg, const Args&... args) {
    constexpr bool on_cpu = requires { op.run_cpu(args..., cfg); };
    constexpr bool on_gpu = requires { op.run_cuda(args..., cfg); };
    constexpr bool anywhere = requires { op.run(args..., cfg); };
    static_assert(on_cpu || on_gpu || anywhere,
                  "the operation has no run, run_cpu or run_cuda for these arguments");
    if constexpr (on_cpu) {
        if (platform == "cpu") {
            return op.run_cpu(args..., cfg);
        }
    }
    if constexpr (on_gpu) {
        if (platform != "cpu") {
            return op.run_cuda(args..., cfg);
        }
    }
    if constexpr (anywhere) {
        return op.run(args..., cfg);
    } else {
        no_code_for(op.name(), platform);
    }
}

template <class Op, class... Args>
concept HasVjp = requires(const Op& op, const std::vector<at::Tensor>& grads,
                          const typename Op::BackwardConfig& cfg, const Args&... args) {
    { op.vjp(grads, args..., cfg) } -> std::convertible_to<std::vector<at::Tensor>>;
};

// Of an operation without state the type says everything; else the object does, so that one that is
// made anew for each call is looked up the long way.
template <AnOperation Op>
std::uint64_t identity_of(const Op& op) {
    if constexpr (sizeof(Op) ==
                  sizeof(Operation<typename Op::Config, typename Op::BackwardConfig>)) {
        static const std::uint64_t id = new_operation_id();
        return id;
    } else {
        return op.id();
    }
}

}  // namespace detail

}  // namespace twinkle
