#pragma once
// The operators that put an autograd.Function of a kernel into the graph of autograd.
//
//     twinkle::autograd_apply(Any ctx, Any args) -> Tensor
//     twinkle::autograd_apply_many(Any ctx, Any args) -> Tensor[]
//
// `ctx` is an object of a TorchScript class with the methods forward, backward and, for some,
// setup_context; `args` is the tuple of forward's arguments. The class is saved with the model, so
// that these two serve every Function there is.

namespace twinkle::runtime {

// Attributes of such a class that mean something to the operators. What a Function stores under
// other names is its own.
namespace context_attribute {
constexpr const char* saved_tensors = "saved_tensors";
constexpr const char* needs_input_grad = "needs_input_grad";
constexpr const char* materialize_grads = "twinkle_materialize_grads";
constexpr const char* non_differentiable = "twinkle_non_differentiable";
constexpr const char* dirty = "twinkle_dirty";
}  // namespace context_attribute

}  // namespace twinkle::runtime
