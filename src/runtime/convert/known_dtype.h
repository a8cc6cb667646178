#pragma once
// What is known of a value while dtypes are followed through a model, and how LibTorch promotes.

#include <torch/script.h>

#include <optional>
#include <vector>

namespace twinkle::runtime {

// What is known of a value.
struct Known {
    enum class Kind { unknown, tensor, number, several, module };
    Kind kind = Kind::unknown;
    std::optional<at::ScalarType> dtype{};  // of a tensor, or of all tensors in a list
    bool assumed = false;  // the dtype is that of an input of the model, which nothing tells
    bool single = false;   // a tensor of no dimension: it promotes nothing
    const torch::jit::Value* made = nullptr;   // where its elements were computed
    const torch::jit::Node* cast = nullptr;    // it is this cast to float32 of the new dtype …
    const torch::jit::Value* under = nullptr;  // … of this value
    std::vector<Known> elements{};             // of a tuple or list
    c10::IValue object{};
};

Known known_tensor(std::optional<at::ScalarType> dtype, const torch::jit::Value* made,
                   bool single = false);

// What holds of both.
Known joined(const Known& a, const Known& b);

// The tensors in it, also in tuples and lists.
void collect_tensors(const Known& known, std::vector<const Known*>& tensors);

bool is_whole(at::ScalarType dtype);  // an integer or a boolean

// The dtype of a result as LibTorch promotes; tensors without dimensions count where they are of a
// higher category. `floats`: integers become float32. None: something is not known that could
// decide.
std::optional<at::ScalarType> promoted(const std::vector<const Known*>& tensors, bool floats);

}  // namespace twinkle::runtime
