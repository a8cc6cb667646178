#pragma once
// The text of a first twinkle.toml.

#include <string>
#include <vector>

namespace twinkle::project {

// A class of a model that a layer may take.
struct ClassFound {
    std::string class_name;
    std::string layer;   // the kernel name it would be bound to
    std::string kernel;  // "twinkle-pack: RMSNorm"; empty where none is there
    std::size_t instances = 0;
    bool in_preset = false;  // else only its name and attributes fit, which proves nothing
};

// A function that a model calls and a kernel may stand for.
struct FunctionFound {
    std::string name;    // in full
    std::string kernel;  // "twinkle-pack: silu", or "fast.py: silu"
    std::size_t calls = 0;
    bool bound = false;  // by a preset; else only the name and the call fit, which proves nothing
};

// The lines of [functions.X] that would bind it; of several functions of one name, tables of an
// array.
std::string function_tables(const std::vector<FunctionFound>& functions);

// Has a comment for everything that a manifest can say. `model`: what was looked at, for a comment;
// empty: nothing. Classes of presets are bound by the preset; others are proposed in comments, and
// so are functions.
std::string new_manifest(const std::string& model, const std::vector<ClassFound>& classes,
                         const std::vector<FunctionFound>& functions);

}  // namespace twinkle::project
