#pragma once
// A model prepared for capture: frozen, and with executor settings of its own that change nothing
// for the rest of the process.

#include "runtime/replay/join_linears.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// Code of forward() for captures alone, which reads the results of `early` behind its arguments.
struct CaptureCode {
    std::unique_ptr<torch::jit::GraphFunction> forward;
    std::unique_ptr<torch::jit::GraphFunction> early;  // early_values.h; null: there are none
    JoinedLinears joined;
};

class GraphModel {
public:
    // Throws Error(malformed) if it has no forward(). `gather`: on devices of this type, weights of
    // layers that could be joined come to lie together (gather_weights.h), if there is code for
    // captures.
    GraphModel(torch::jit::Module model, bool freeze, bool fuse,
               std::optional<c10::DeviceType> gather = std::nullopt);

    // Runs this code of forward() on a model that somebody else holds; neither frozen, so that
    // weights stay where they are, nor profiled or fused. Only to be used while the model lives: a
    // weak reference would keep the model's code alive, of which the user of this may be a part.
    GraphModel(const c10::intrusive_ptr<c10::ivalue::Object>& model,
               std::shared_ptr<torch::jit::Graph> forward);

    // The arguments of forward() in the order of its parameters, with defaults filled in. Throws
    // what LibTorch throws if they do not fit.
    std::vector<c10::IValue> arguments(std::vector<c10::IValue> inputs,
                                       const torch::jit::Kwargs& named) const;
    c10::IValue run(const std::vector<c10::IValue>& arguments) const;
    c10::IValue run(const CaptureCode& code, std::vector<c10::IValue> arguments,
                    const std::vector<c10::IValue>& early) const;
    std::vector<c10::IValue> run_early(const CaptureCode& code,
                                       const std::vector<c10::IValue>& arguments) const;
    // Joins linear layers (join_linears.h), whose weights are copied now, and leaves out what
    // depends on sizes alone (early_values.h). Null: there is neither, or the model's weights may
    // be written without notice, or LibTorch's fuser is wanted.
    std::shared_ptr<const CaptureCode> capture_code(c10::DeviceType type, bool dense_results) const;
    // Runs with LibTorch's own settings, which are faster if nothing is captured.
    c10::IValue run_uncaptured(const std::vector<c10::IValue>& arguments) const;

    torch::jit::Module module() const;
    bool is_training() const;
    bool wants_gradients() const { return wants_gradients_; }
    // Why it is never captured; empty: no reason is known.
    const std::string& obstacle() const { return obstacle_; }
    const std::string& not_frozen() const { return not_frozen_; }
    // Device memory that weights had before they were gathered.
    std::size_t left_bytes() const { return left_bytes_; }

private:
    bool freeze_it();

    std::optional<torch::jit::Module> module_;
    c10::ivalue::Object* served_ = nullptr;                        // in its place
    std::unique_ptr<torch::jit::GraphFunction> body_;              // of the served one
    mutable std::optional<torch::jit::GraphExecutor> uncaptured_;  // if settings differ
    std::string obstacle_;
    std::string not_frozen_;
    bool wants_gradients_ = false;
    std::size_t left_bytes_ = 0;
};

}  // namespace twinkle::runtime
