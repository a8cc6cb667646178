#pragma once
// The contents of a registry, and how registrations replace each other.

#include "twinkle/registry.h"

#include <filesystem>
#include <string>
#include <vector>

namespace twinkle::runtime {

// `call` is the number of the call that registered it: of two that bind one class, the later one
// comes first. Registrations of one call keep their order.
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
    // The operator's name in a model, for a C++ function; unique, so that no other function can
    // take its place in a model that is kernelized already.
    std::string native;
};

struct RegisteredPattern {
    std::string source, file;           // the formulas' text, and its name
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
    std::string user_agent;          // this call's addition to the hub client's
    std::vector<std::string> trust;  // as in a manifest
    std::vector<std::string> notes;
};

// Checks the words of a registration and normalizes their spelling. Throws Error(malformed).
LayerKernel normalized(LayerKernel layer);

// Replaces the entry of the same module, name, device and mode. Throws Error(malformed).
void put(Registrations& to, FunctionKernel function);

// Replaces the entry of the same name, device and mode. Throws Error(malformed | not_found).
void put(Registrations& to, const PatternKernel& pattern);

// Replaces what binds the same class to this name, or, without a condition, to any name.
void put(Registrations& to, ExternalLayer external);

// Replaces the entry of the same name, device, range, mode and bound instances.
void put(Registrations& to, LayerKernel layer);

// Replaces all modes of the same name, device and range.
void put(Registrations& to, const KernelMapping& mapping, bool inherit_mapping);

// The registrations of a registry, overlaid with the scopes of this thread.
Registrations effective(const Registry& registry);

}  // namespace twinkle::runtime
