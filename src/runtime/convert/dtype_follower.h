#pragma once
// One walk through a model with given meanings of its dtype constants (dtype_flow.h).

#include "runtime/convert/dtype_flow.h"
#include "runtime/convert/known_dtype.h"
#include "runtime/graph/stack_frames.h"

#include <optional>
#include <string_view>
#include <unordered_map>

namespace twinkle::runtime {

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
    Known called(const torch::jit::Node* node, const Values& values);
    Known held_together(const torch::jit::Node* node, const Values& values);
    void taken_apart(const torch::jit::Node* node, Values& values);
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
