#pragma once
// An operator of the bundled kernels: whether it serves a call, what it may be given, the call.

#include "twinkle/invocation.h"
#include "twinkle/tuning_config.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace twinkle::runtime {

std::string pack_build();  // of the pack and LibTorch

// Sizes that count exactly, of weights above all: an invocation has buckets of tensors' sizes
// (call_key.h). No argument of the pack's operators.
template <std::size_t count>
struct ExactSizes : std::array<std::int64_t, count> {};

// Who computes a call.
inline constexpr const char* by_pack = "twinkle-pack";
inline constexpr const char* by_libtorch = "libtorch";

// A configuration has "implementation", one of these; by the pack also the operator's keyword
// arguments that are other than without a configuration.
CfgFields cfg_of(const char* implementation);
// Throws Error(malformed): it names neither.
bool is_by_pack(const CfgFields& cfg);

// Loads the pack when it is made. Where that is not installed, or lacks the operator, it serves
// nothing.
class PackOperator {
public:
    explicit PackOperator(std::string name);

    const std::string& name() const { return name_; }
    // Whether the pack has code for such a call: its device, and the dtypes of its tensors.
    bool serves(const Invocation& invocation) const;
    // The pack's first, by its own rules, then those that its tuning.toml declares, then LibTorch.
    std::vector<CfgFields> configurations(const Invocation& invocation) const;
    // The pack by its own rules where it serves the call, else LibTorch.
    CfgFields usual(const Invocation& invocation) const;

    // None: the operator leaves this call to LibTorch. Throws Error: not_found (there is no such
    // operator), malformed (the configuration is for another one).
    template <class R, class... A>
    std::optional<R> call(const CfgFields& cfg, const A&... arguments) const {
        torch::jit::Stack stack;
        (push(stack, arguments), ...);
        run(cfg, stack);
        if (stack.at(0).isNone()) {
            return std::nullopt;
        }
        return result<R>(stack);
    }

private:
    struct Keyword {
        std::string name;
        c10::IValue value;  // without a configuration
    };

    template <class T>
    static void push(torch::jit::Stack& stack, const T& argument) {
        stack.emplace_back(argument);
    }
    template <std::size_t count>
    static void push(torch::jit::Stack& stack, const std::array<std::int64_t, count>& integers) {
        stack.insert(stack.end(), integers.begin(), integers.end());
    }
    template <std::size_t count>
    static void push(torch::jit::Stack&, const ExactSizes<count>&) {}

    template <class R>
    static R result(const torch::jit::Stack& stack) {
        if constexpr (requires { std::tuple_size<R>::value; }) {
            return [&]<std::size_t... at>(std::index_sequence<at...>) {
                return R{stack.at(at).template to<std::tuple_element_t<at, R>>()...};
            }(std::make_index_sequence<std::tuple_size_v<R>>());
        } else {
            return stack.at(0).template to<R>();
        }
    }

    CfgFields other_than_usual(CfgFields values) const;
    // Replaces the arguments by the results.
    void run(const CfgFields& cfg, torch::jit::Stack& stack) const;

    std::string name_;
    std::optional<c10::OperatorHandle> handle_;
    std::vector<Keyword> keywords_;
    bool may_decline_ = false;  // on a CPU; elsewhere it always does
};

// One without a configuration: a gradient.
template <class R, class... A>
R call_pack(const std::string& op, const A&... arguments) {
    return PackOperator(op).call<R>(cfg_of(by_pack), arguments...).value();
}

}  // namespace twinkle::runtime
