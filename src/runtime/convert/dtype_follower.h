#pragma once
// One walk through a model with given meanings of its dtype constants (dtype_flow.h).

#include "runtime/convert/dtype_flow.h"
#include "runtime/inspect/stack_frames.h"

#include <optional>
#include <string_view>
#include <unordered_map>

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

class DtypeFollower {
public:
    DtypeFollower(const torch::jit::Module& model, const DtypeSettings& settings,
                  const std::map<Place, DtypeMeaning>& pinned,
                  const std::set<const torch::jit::Value*>& rounded,
                  const std::map<const torch::jit::Graph*, std::string>& names,
                  StackReader& stacks);

    DtypeFlow follow();

private:
    using Values = std::unordered_map<const torch::jit::Value*, Known>;

    Known call(torch::jit::Function& function, const std::vector<Known>& inputs);
    void block(const torch::jit::Block* block, Values& values);
    void branches(const torch::jit::Node* node, Values& values);
    void primitive(const torch::jit::Node* node, Values& values);
    Known constant(const torch::jit::Node* node) const;
    Known attribute(const Known& object, const std::string& name) const;
    void tensor_operator(const torch::jit::Node* node, Values& values);
    std::optional<at::ScalarType> asked_dtype(const torch::jit::Node* node, Known& first);
    DtypeMeaning meaning(const torch::jit::Node* node, std::size_t input, const Known& first);
    Known cast(const torch::jit::Node* node, Values& values);
    Known computed(const torch::jit::Node* node, std::string_view op,
                   const std::vector<Known>& inputs) const;
    std::optional<at::ScalarType> agreed(const torch::jit::Node* node,
                                         const std::vector<Known>& inputs);
    Known at(const torch::jit::Value* value, const torch::jit::Node* user, const Values& values);
    std::vector<Known> inputs_of(const torch::jit::Node* node, const Values& values);
    bool outside(const torch::jit::Node* user, const torch::jit::Node* cast);
    Known held(const at::Tensor& tensor) const;

    const torch::jit::Module& model_;
    const DtypeSettings& settings_;
    const std::map<Place, DtypeMeaning>& pinned_;
    const std::map<const torch::jit::Graph*, std::string>& names_;
    StackReader& stacks_;
    DtypeFlow flow_;
    std::set<const void*> followed_;  // functions
    std::size_t depth_ = 0;
    std::size_t visits_ = 0;
};

}  // namespace twinkle::runtime
