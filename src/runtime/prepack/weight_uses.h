#pragma once
// Which weights of a model its methods give to nothing but functions of kernels that take them
// prepacked.

#include "runtime/prepack/prepack_operators.h"

#include <torch/script.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace twinkle::runtime {

class WeightUses {
public:
    // Reads all code that methods of the root reach.
    WeightUses(const torch::jit::Module& model, const PrepackOperators& operators);

    bool may_prepack(const c10::ClassType& type, const std::string& attribute) const;
    bool may_prepack_any() const;

private:
    using Attribute = std::pair<const c10::ClassType*, std::string>;
    using Input = std::pair<const torch::jit::Function*, std::size_t>;

    void reach(torch::jit::Function* function);
    void follow(const torch::jit::Node* node);
    void read(const torch::jit::Node* node);
    bool takes(torch::jit::Function& function, std::size_t input);
    bool is_weight_of_kernel(const torch::jit::Function& function, const torch::jit::Value* value);
    bool all_uses_take(const torch::jit::Value* value);

    const PrepackOperators& operators_;
    std::map<Attribute, bool> attributes_;
    std::map<Input, bool> inputs_;
    std::set<const void*> reached_;
    std::vector<torch::jit::GraphFunction*> pending_;
    int depth_ = 0;
    bool all_followed_ = true;  // false: some call leads nobody knows where
};

}  // namespace twinkle::runtime
