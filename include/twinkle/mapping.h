#pragma once
// The mapping file (twinkle.map.json, schema "twinkle.map/1"): what `twinkle resolve` decided for
// one machine, and all that kernelize needs: no manifest, no network, no kernel loaded. The file
// format is described in formats (README, "Files"); this is its form in memory.

#include "twinkle/api.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace twinkle {

// The value of a module attribute in a condition or a supplied attribute.
using AttributeValue = std::variant<bool, std::int64_t, double, std::string>;

struct MappedFile {
    std::string path;  // POSIX, relative to the kernel's folder, never leaving it
    std::uint64_t size = 0;
    std::string sha256;  // 64 lower-case hex digits
};

struct MappedOperator {
    std::string name;    // without namespace: "rms_norm"
    std::string schema;  // "rms_norm(Tensor x, Tensor weight, float eps) -> Tensor"
};

// One build: a kernel for one device. `name` and `device` together are unique in a mapping.
struct TWINKLE_API MappedKernel {
    std::string name;            // candidates refer to it: "twinkle-pack", "org/name@1", …
    std::string repo_id;         // empty for local kernels
    std::string commit;          // 40 hex digits; empty for local kernels
    std::string variant;         // empty for a plain Python package
    std::string device;          // cpu, cuda, …; "any" for a plain Python package
    std::filesystem::path path;  // the folder of the variant; relative in the file = to the file
    std::string op_namespace;    // empty where the kernel has no operators
    std::vector<std::string> archs;
    std::vector<MappedOperator> operators;
    std::vector<MappedFile> files;  // sorted by path, every file of the build

    // SHA-256 over "path\0size\0sha256\n" of every file: the identity of a build, written into
    // models.
    std::string build_id() const;
};

struct LayerCandidate {
    std::string kernel;                             // MappedKernel::name
    std::string layer;                              // class in the package's layers module
    std::string device;                             // cpu, cuda, …, or "any"
    std::optional<std::pair<int, int>> capability;  // major * 10 + minor, inclusive
    std::string mode;  // inference, training, inference+compile, training+compile, fallback
    bool has_backward = true;
    bool can_torch_compile = false;
    // What it computes in, where that is coarser than the dtype of the model: "int8", "int4", …
    // It serves only where this is asked for (KernelizeOptions::precisions). Empty: it is exact.
    std::string precision{};
};

struct MappedLayer {
    std::string kernel_name;
    std::vector<std::string> classes;            // full names or globs, without mangling
    std::vector<std::string> modules;            // globs over instances; empty: all
    std::map<std::string, AttributeValue> when;  // only instances with these attributes
    std::map<std::string, std::vector<std::string>> when_submodule;  // … whose submodule is one of
    std::map<std::string, AttributeValue> attributes;  // supplied where the saved model lost them
    std::vector<LayerCandidate> candidates;
    bool preset = false;  // from a preset, most of whose classes no model has
};

// What replaces a function: a function of a kernel (`kernel` and `function`) or of Python text
// (`source` and `function`), or an operator.
struct FunctionCandidate {
    std::string kernel;    // MappedKernel::name; with `op` the kernel that has it
    std::string function;  // in the kernel's package, or a layer of it; or in `source`
    std::string source;    // the text of a Python file …
    std::string file;      // … and what it is called in messages
    std::string op;        // "namespace::name"
    std::string device;    // cpu, cuda, …, or "any"
    std::string mode;
    bool has_backward = true;
    bool can_torch_compile = false;
};

struct TWINKLE_API MappedFunction {
    std::string target_module;  // "my_pkg.math_ops"
    std::string func_name;      // "add"
    std::vector<FunctionCandidate> candidates;

    // "my_pkg.math_ops.add"; "add" of target_module "__main__", the script that made the model.
    std::string full_name() const;
};

// Formulas that are replaced wherever a model's graphs compute them, whatever its classes and
// functions are called.
struct MappedPattern {
    std::string name;                   // "add_rms_norm"
    std::string source;                 // the text of the Python file with the formulas …
    std::string file;                   // … and what it is called in messages
    std::vector<std::string> formulas;  // functions in it, with the same parameters
    std::vector<FunctionCandidate> candidates;
    bool preset = false;  // from a preset, most of whose formulas no model has
};

struct Rejection {
    std::string name;
    std::string because;
};

struct Decision {
    std::string what;                   // "variant of twinkle-pack", …
    std::optional<std::string> chosen;  // none: nothing fits
    std::string because;
    std::vector<Rejection> rejected;
};

struct TWINKLE_API Mapping {
    std::map<std::string, std::string> target;  // the keys of a target, as text
    std::vector<MappedKernel> kernels;
    std::vector<MappedLayer> layers;
    std::vector<MappedFunction> functions;
    std::vector<MappedPattern> patterns;  // the first one that matches a place gets it
    std::vector<Decision> decisions;

    // Reads and validates; relative paths become absolute. Throws Error(malformed | not_found).
    static Mapping load(const std::filesystem::path& file);
    // `folder` is the base of relative paths; `origin` names the text in messages.
    static Mapping parse(std::string_view json, const std::filesystem::path& folder,
                         std::string_view origin);
    // Sorted and stable: equal mappings give equal bytes. Ends with a newline.
    std::string to_json() const;
};

}  // namespace twinkle
