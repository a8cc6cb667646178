#pragma once
// A package of AOTInductor (.pt2) that is a kernel: the operator that it computes, and for which
// inputs it was compiled, as its author has written both into the package's metadata, as JSON under
// the key "twinkle":
//
//     {"operator": "rms_norm(Tensor x, Tensor weight, float eps) -> Tensor",
//      "attributes": ["weight", "eps"], "constants": {"eps": 1e-06},
//      "inputs": [{"dtype": "bfloat16", "sizes": ["rows", 4096]},
//                 {"dtype": "bfloat16", "sizes": [4096]}],
//      "sizes": {"rows": [1, 65536]}}
//
// Compiled code checks nothing: what is said here decides which calls it gets.

#include "archive/compiled_package.h"
#include "twinkle/mapping.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::kernel {

// A dimension: of one size, or of any from `least` to `most`, the same wherever it has this name.
struct CompiledSize {
    std::string name;  // empty: of one size
    std::int64_t least = 0;
    std::int64_t most = 0;
};

// A parameter of the operator: a contiguous tensor, or a number that the code was compiled for.
struct CompiledParameter {
    std::string name;
    std::string type;                        // "Tensor", "float", "int", "bool"
    std::string dtype;                       // of a tensor: "float32", "bfloat16", …
    std::vector<CompiledSize> sizes;         // of a tensor
    std::optional<AttributeValue> constant;  // of a number
    bool is_tensor() const { return type == "Tensor"; }
};

struct CompiledOperator {
    std::string name;    // "rms_norm"
    std::string schema;  // "rms_norm(Tensor x, …) -> Tensor"
    std::vector<CompiledParameter> parameters;
    std::size_t results = 1;
    std::vector<std::string> attributes;  // parameters that a layer finds in its host
};

// What the author's JSON says. Throws archive::InvalidJson.
CompiledOperator parse_compiled_operator(std::string_view json);

struct OperatorPackage {
    archive::CompiledModel model;
    CompiledOperator op;
    const std::string& library() const { return model.libraries.front(); }
};

// None: the file is no package of AOTInductor, or says nothing of an operator. Throws
// Error(malformed) where it does and cannot be used as a kernel: weights or GPU code beside its
// library, operators called by name, metadata that contradict themselves. `shown` is the file's
// name for messages.
std::optional<OperatorPackage> read_operator_package(const std::filesystem::path& file,
                                                     const std::string& shown);

// "float32[rows: 1 to 65536, 64], float32[64], eps = 1e-06", for messages.
std::string compiled_for_text(const CompiledOperator& op);

}  // namespace twinkle::kernel
