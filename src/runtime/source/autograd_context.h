#pragma once
// `ctx` in an autograd.Function: an object of a TorchScript class that grows an attribute for
// everything that forward stores.

#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/csrc/jit/frontend/tree_views.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// What LibTorch's compiler asks for the first parameter of forward, backward and setup_context.
struct ContextSelf : torch::jit::Self {
    ContextSelf(c10::ClassTypePtr class_type, std::size_t arguments)
        : type(std::move(class_type)), argument_count(arguments) {}

    std::shared_ptr<torch::jit::SugaredValue> makeSugared(torch::jit::Value* v) const override;
    c10::ClassTypePtr getClassType() const override { return type; }

    c10::ClassTypePtr type;
    std::size_t argument_count;  // of forward
};

// A lowered forward without its parameter `ctx`, for a call that no gradient will come back to:
// what it stores becomes local variables, what it saves is dropped. Nothing if ctx is used as a
// value.
std::optional<torch::jit::Def> without_context(const torch::jit::Def& forward,
                                               const std::string& ctx, std::size_t argument_count);

}  // namespace twinkle::runtime
