#pragma once
// The calls of Python functions that a model's code still holds as calls: those of scripted code,
// and in a trace those of functions that were scripted.

#include <torch/script.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace twinkle::runtime {

struct FunctionCall {
    // "layers.0.mlp.forward:my_pkg.ops.add", and "#2" behind it for the next one in that method. A
    // function calls under its own name: "my_pkg.ops.outer:my_pkg.ops.add".
    std::string site;
    std::string function;  // "my_pkg.ops.add"
    std::string path;      // of the instance; "" for a call in a function
    torch::jit::Module instance;
    torch::jit::Function* caller = nullptr;
    torch::jit::Node* node = nullptr;
    bool in_function = false;
    bool replaced = false;  // what it calls now stands for the function

    torch::jit::Function& callee() const;
};

// Where a function is called, or a method of a class that is no module.
struct FunctionUse {
    std::string site;                                // of the call; "" for a method of a class
    std::string path;                                // of the instance …
    std::string method;                              // … in whose method it is called,
    const torch::jit::Function* function = nullptr;  // or the function in which it is
};

struct FunctionUses {
    std::vector<const torch::jit::Function*> functions;  // as they were found
    std::unordered_map<const torch::jit::Function*, std::vector<FunctionUse>> of;
};

// Of every method and hook of every instance, in the order of the module tree, then those in the
// functions and classes that are called. An instance that shares its code has calls of its own.
std::vector<FunctionCall> function_calls(const torch::jit::Module& root,
                                         FunctionUses* uses = nullptr);

// Functions that stand for others are called "twinkle_functions." and the name of the other, so
// that a call keeps its site.
c10::QualifiedName name_in_place_of(const torch::jit::Function& function);

}  // namespace twinkle::runtime
