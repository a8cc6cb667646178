#pragma once
// What is known of the values of a graph before it runs: constants, objects that the model holds,
// and from which of their attributes tensors come.

#include <torch/script.h>

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace twinkle::runtime {

struct KnownValue {
    std::optional<c10::IValue> constant{};  // or an object
    // The attribute of this object that holds the tensor; null: no attribute is known to.
    c10::ivalue::Object* owner = nullptr;
    std::size_t slot = 0;
    // Whether it is in the hands of a kernel's function that takes prepacked weights.
    bool is_taken = false;

    bool is_weight() const { return owner != nullptr; }
    c10::ivalue::Object* object() const;  // null: it is no object, or not known
};

class KnownValues {
public:
    KnownValue of(const torch::jit::Value* value) const;
    void set(const torch::jit::Value* value, KnownValue known);
    // Evaluates a node that computes with constant numbers.
    void compute(const torch::jit::Node* node);

private:
    std::unordered_map<const torch::jit::Value*, KnownValue> values_;
};

}  // namespace twinkle::runtime
