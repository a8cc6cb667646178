#pragma once
// Which dtype every value of a model has once its weights have another one, and what the dtype
// constants in its code must become.
//
// In a trace of a float32 model a cast to float32 is either one that its author wrote (a norm
// computes in float32 on purpose), or a cast to the dtype that some tensor had at that moment
// (`.to(x.dtype)`): both are the same constant. They are told apart by what they are given once the
// weights are of the new dtype: nobody casts a value to the dtype that it has. And as x.to(float32)
// of a float32 x is x itself, a trace reads the cast wherever its author read x; where that is
// outside of the module that made the cast, it is x again.

#include <torch/script.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace twinkle::runtime {

enum class DtypeMeaning {
    literal,  // as written
    weights,  // the dtype of the weights
};

using Place = std::pair<const torch::jit::Node*, std::size_t>;  // an input of a node

struct DtypeSettings {
    at::ScalarType to;
    std::set<at::ScalarType> from;  // the dtypes of the weights now
    // Weights are float32 now and will not be: a constant float32 may mean either.
    bool ambiguous() const { return to != at::kFloat && from.contains(at::kFloat); }
};

struct DtypeFlow {
    std::map<Place, DtypeMeaning> constants;  // every floating dtype constant that was reached
    // Values that are read in the new dtype by what hands them on (dtype_rules.h).
    std::set<const torch::jit::Value*> rounded;
    std::map<Place, const torch::jit::Value*>
        read_instead;                                   // x where the trace reads x.to(float32)
    std::set<const torch::jit::Node*> computed_in_new;  // nodes with a result of the new dtype
    // Operators that would get several dtypes, as "linear in torch.nn….Linear.forward"; by what
    // could be rounded, where that is known.
    std::map<const torch::jit::Node*, std::pair<std::string, const torch::jit::Value*>> conflicts;
    std::size_t cost = 0;  // of meanings that nobody is likely to have had
};

// Follows every method from the model's inputs on. Where the dtypes do not fit, other meanings of
// the constants are tried, and then values are rounded that weights of the new dtype meet. What
// does not fit even then is left in `conflicts`. Throws Error(refused) for a model that is too
// large to be followed.
DtypeFlow dtype_flow(const torch::jit::Module& model, const DtypeSettings& settings);

// The name of each method: "pkg.Class.forward", without mangling.
std::map<const torch::jit::Graph*, std::string> method_names(const torch::jit::Module& model);

}  // namespace twinkle::runtime
