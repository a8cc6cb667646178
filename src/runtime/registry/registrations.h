#pragma once
// What a registry holds, and how registrations replace each other.

#include "twinkle/registry.h"

#include <filesystem>
#include <string>
#include <vector>

namespace twinkle::runtime {

// `call` is the number of the call that registered it: where two bind one class, the later one goes
// before the earlier. What one call registers keeps its order.
struct RegisteredLayer {
    LayerKernel kernel;  // mode and device normalized
    std::size_t call;
};

struct ExternalLayer {
    std::string class_name;  // full name or glob
    std::string kernel_name;
    InstanceCondition condition;
    std::size_t call;
};

struct RegisteredFunction {
    FunctionKernel kernel;  // mode and device normalized
    // What a model calls it by where it is C++; a name of its own, so that no other takes its place
    // in a model that is kernelized already.
    std::string native;
};

struct RegisteredPattern {
    std::string source, file;           // of the formulas: text, and what it is called
    std::vector<std::string> formulas;  // functions in it
    RegisteredFunction replacement;     // under the name of the pattern

    const std::string& name() const { return replacement.kernel.func_name; }
};

struct Registrations {
    std::vector<RegisteredLayer> layers;
    std::vector<RegisteredFunction> functions;
    std::vector<RegisteredPattern> patterns;
    std::vector<ExternalLayer> external;
    std::size_t calls = 0;  // so far; the number of the one in progress
    std::filesystem::path lock;
    HubAccess hub;
    std::string user_agent;          // what this call adds to the hub client's
    std::vector<std::string> trust;  // as in a manifest
    std::vector<std::string> notes;
};

// Checks the words of a registration and gives them their usual spelling. Throws Error(malformed).
LayerKernel normalized(LayerKernel layer);

// In the place of what has the same module, name, device and mode. Throws Error(malformed).
void put(Registrations& to, FunctionKernel function);

// In the place of what has the same name, device and mode. Throws Error(malformed | not_found).
void put(Registrations& to, const PatternKernel& pattern);

// In the place of what binds the same class to this name, or, unless there is a condition, to any.
void put(Registrations& to, ExternalLayer external);

// In the place of what has the same name, device, range, mode and bound instances.
void put(Registrations& to, LayerKernel layer);

// In the place of all modes of the same name, device and range.
void put(Registrations& to, const KernelMapping& mapping, bool inherit_mapping);

// Those of a registry, with the scopes of this thread over them.
Registrations effective(const Registry& registry);

}  // namespace twinkle::runtime
