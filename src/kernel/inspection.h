#pragma once
// All that can be known of a build without running anything of it.

#include <filesystem>
#include <string>
#include <vector>

#include "kernel/build.h"
#include "kernel/verdict.h"

namespace twinkle::kernel {

struct OperatorFacts {
    std::string name;
    std::string schema;
    std::vector<std::string> mutates;
    std::vector<std::string> keys;  // of its library: it is registered for some of them
    // The whole schema stands in the library; otherwise a linker has merged it into another one.
    bool schema_is_certain = true;
    bool keys_are_certain = false;  // it was loaded: it is registered for all of the keys
};

struct JudgedLayer {
    LayerSource layer;
    Verdict verdict;
};
struct JudgedFunction {
    FunctionSource function;
    Verdict verdict;
};

struct Inspection {
    Build build;
    std::vector<OperatorFacts> operators;
    bool operators_complete = true;  // false: there may be more, which only loading it tells
    std::vector<JudgedLayer> layers;
    std::vector<JudgedFunction> functions;
    std::vector<Problem> problems;   // of sources that cannot be read
    std::vector<std::string> archs;  // of the embedded GPU code, in the spelling of metadata
    bool archs_complete = true;      // false: a part of it could not be read
};

// Throws as read_build.
Inspection inspect_build(const std::filesystem::path& folder);
Inspection inspect_build(Build build);

// The operators that the build's libraries have registered, in the place of those that their files
// show: there are no others.
void note_loaded(Inspection& inspection, std::vector<OperatorFacts> registered);

}  // namespace twinkle::kernel
