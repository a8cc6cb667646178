#pragma once
// Types of parameters and of the host's members that a layer reads, when only source is at hand:
// from its annotations, else guessed by name.

#include "kernel/layers.h"
#include "runtime/source/package_values.h"

#include <torch/script.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// "eps" is a float, "num_heads" an integer; a tensor if the name tells nothing.
c10::TypePtr type_by_name(const std::string& name);

struct TypedParameter {
    std::string name;
    c10::TypePtr type;  // null: it is annotated with what TorchScript does not have
    bool keyword_only = false;
};

// The parameters without a default. `guess`: gives the type of an unannotated one, by its name.
using TypeGuess = std::function<c10::TypePtr(const std::string& name)>;
std::vector<TypedParameter> required_parameters(Compilation& compilation,
                                                const PackageModule& module,
                                                const python::Arguments& arguments, bool has_self,
                                                const TypeGuess& guess);

// A module with the attributes and submodules that `forward` reads of self. `described`: the class
// that annotates them.
torch::jit::Module guessed_host(Compilation& compilation, const PackageModule& module,
                                const python::ClassDef& described,
                                const python::FunctionDef& forward);

}  // namespace twinkle::runtime
