#pragma once
// The calls of Python functions that a model's code still holds as calls: those of scripted code,
// and in a trace those of functions that were scripted.

#include <torch/script.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace twinkle::runtime {

// Which piece of a graph a call stands for that a trace had inlined.
struct InlinedPlace {
    std::size_t number = 1;  // of the calls of the function in that graph
    std::size_t run = 0;     // of its runs (trace/traced_calls.h), and which part of it
    std::size_t begin = 0;
    std::size_t count = 0;
    std::uint64_t given = 0;  // which of its results the call gives, by bit
};

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
    bool replaced = false;                // what it calls now stands for the function
    std::optional<InlinedPlace> inlined;  // … which a trace had inlined

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

// The calls in every method and hook of every instance, in the order of the module tree, then those
// in the functions and classes that are called. An instance that shares its code has calls of its
// own.
std::vector<FunctionCall> function_calls(const torch::jit::Module& root,
                                         FunctionUses* uses = nullptr);

// Functions that stand for others are called "twinkle_functions." and the name of the other, so
// that a call keeps its site.
c10::QualifiedName name_in_place_of(const torch::jit::Function& function);
// A call that a trace had inlined has its place in the name of what it calls: nothing else in a
// model survives save, load and save.
c10::QualifiedName name_in_place_of(const std::string& function, const InlinedPlace& place);

// "layers.0.mlp.forward:my_pkg.ops.add#2"
std::string site_of_call(const std::string& caller, const std::string& function,
                         std::size_t number);

// Whether a node calls what stands in place of a function.
bool stands_for(const torch::jit::Node* node, const std::string& function);

}  // namespace twinkle::runtime
