#pragma once
// The code in a saved model, read as text: for models that cannot be loaded here, and to learn
// which operators must exist before one is. TorchScript saves its code as a subset of Python.

#include "runtime/model/model_file.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct SavedMethod {
    std::string name;
    std::string signature;  // "forward(self, x: Tensor) -> Tensor", without mangling
};

// A class, or all classes that differ only in their mangling.
struct SavedClass {
    std::string base;                               // Module, NamedTuple, Enum, Interface, or empty
    std::size_t count = 0;                          // how many there are of this name
    std::vector<SavedMethod> methods;               // of the first of them
    std::map<std::string, std::string> attributes;  // name → type, or type and value of a constant
};

struct SavedCode {
    std::map<std::string, SavedClass> classes;            // by name without mangling
    std::map<std::string, std::string> functions;         // name → signature
    std::map<std::string, std::size_t> operators;         // "ns::op" → calls; torch.x is aten::x
    std::map<std::string, std::size_t> foreign_classes;   // "ns.Name" of torch.classes → uses
    std::map<std::string, std::size_t> called_functions;  // name without mangling → calls
    std::vector<std::string> unreadable;                  // "code/…: why"
};

// Classes and functions of the files that parse, operators of all files: those that do not parse
// are still searched for calls. Time and memory are linear in the text.
SavedCode read_saved_code(const std::vector<CodeFile>& code);

}  // namespace twinkle::runtime
