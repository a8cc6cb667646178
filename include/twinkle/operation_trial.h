#pragma once
// The candidates of an operation's forward or backward pass, as what is measured (autotune.h).
// Internal: included by executor.h.

#include "twinkle/autotune.h"
#include "twinkle/call_arguments.h"
#include "twinkle/invocation.h"
#include "twinkle/operation.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace twinkle::detail {

// Forward or backward of an operation, as one thing to choose for.
template <class Op, bool backward>
struct Direction {
    using Cfg = std::conditional_t<backward, typename Op::BackwardConfig, typename Op::Config>;

    static Cfg heuristic(const Op& op, const Invocation& invocation) {
        if constexpr (backward) {
            return op.heuristic_backward_cfg(invocation);
        } else {
            return op.heuristic_cfg(invocation);
        }
    }
    static std::vector<Cfg> space(const Op& op, const Invocation& invocation) {
        if constexpr (backward) {
            return op.backward_config_space(invocation);
        } else {
            return op.config_space(invocation);
        }
    }
    // In a backward pass the gradients come first.
    template <class... Args>
    static auto run(const Op& op, std::string_view platform, const Cfg& cfg, const Args&... args) {
        if constexpr (backward) {
            return op.vjp(args..., cfg);
        } else {
            return run_operation(op, platform, cfg, args...);
        }
    }
};

// The heuristic's first, each once.
template <class Op, bool backward>
auto candidates(const Op& op, const Invocation& invocation) {
    using Way = Direction<Op, backward>;
    std::vector<typename Way::Cfg> all = {Way::heuristic(op, invocation)};
    std::vector<std::string> texts = {to_json(all.front())};
    for (auto& cfg : Way::space(op, invocation)) {
        std::string text = to_json(cfg);
        if (std::find(texts.begin(), texts.end(), text) == texts.end()) {
            texts.push_back(std::move(text));
            all.push_back(std::move(cfg));
        }
    }
    return all;
}

template <class Op, bool backward, class... Args>
Trial trial_of(const Op& op, const Invocation& invocation, const Args&... args) {
    using Way = Direction<Op, backward>;
    Trial trial{.build = op.build(), .captured = invocation.captured};
    auto distinct = candidates<Op, backward>(op, invocation);
    for (const auto& cfg : distinct) {
        trial.cfgs.push_back(to_json(cfg));
    }
    const auto keep = [&](const at::Tensor& tensor) { trial.tensors.push_back(tensor); };
    (for_each_tensor(keep, args), ...);
    trial.run = [&op, platform = invocation.device, distinct = std::move(distinct),
                 &args...](std::size_t candidate) {
        std::vector<at::Tensor> results;
        if constexpr (std::is_void_v<decltype(Way::run(op, platform, distinct[0], args...))>) {
            Way::run(op, platform, distinct[candidate], args...);
        } else {
            append_tensors(results, Way::run(op, platform, distinct[candidate], args...));
        }
        return results;
    };
    return trial;
}

}  // namespace twinkle::detail
