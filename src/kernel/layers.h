#pragma once
// The layers and functions of a kernel's Python package, read from its source without running it.

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/reason.h"

namespace twinkle::kernel {

enum class ParameterKind {
    positional_only,
    positional_or_keyword,
    var_positional,
    keyword_only,
    var_keyword
};

struct Parameter {
    std::string name;
    ParameterKind kind = ParameterKind::positional_or_keyword;
    bool has_default = false;
    std::string annotation;  // as it is written; empty if there is none
    std::string default_text;
};

// A rule that a source breaks, or something in it that could not be read.
struct Problem {
    std::string file;  // relative to the package
    int line = 0;
    std::string text;

    std::string message() const;  // "file:line: text"
};

// A call of something the host has: `self.gate_proj(x)`.
struct HostCall {
    std::string path;  // "gate_proj", "experts.router"
    int arguments = 0;
    int line = 0;
};

struct LayerSource {
    std::string name;
    std::string file;  // relative to the package
    int line = 0;
    std::vector<std::string> bases;  // "torch.nn.Module", "Norm"
    bool has_backward = true;
    bool can_torch_compile = false;
    std::string precision;  // `precision = "int8"` in its body; empty: the model's own
    bool prepares = false;  // it has a method prepare, which makes its weights from the host's
    std::vector<Parameter> parameters;         // of forward, without self
    std::string returns;                       // the annotation, as it is written
    std::vector<std::string> host_attributes;  // self.X that forward reads, sorted
    std::set<std::string> tensors;  // what its body declares as a tensor or module of the host
    std::vector<std::string> host_writes;  // self.X that forward assigns or deletes, sorted
    std::vector<HostCall> host_calls;      // in the order of the source
    std::vector<Problem> problems;         // empty: a valid layer
    Usage usage;                           // of forward
};

struct FunctionSource {
    std::string name;    // the name the package offers it by
    std::string file;    // where it is defined
    std::string symbol;  // its name there
    int line = 0;
    std::vector<Parameter> parameters;
    std::string returns;
    std::vector<std::string> decorators;
    bool has_backward = true;        // `name.has_backward = False` in its module
    bool can_torch_compile = false;  // the same
    Usage usage;
};

// A package as its source files: POSIX paths relative to it ("__init__.py", "layers/norm.py").
using PackageSources = std::map<std::string, std::string>;

// The .py files of a package folder. Too many or too large: Error(malformed).
PackageSources read_package(const std::filesystem::path& package_dir);

struct LayerList {
    std::vector<LayerSource> layers;  // in the order of their names
    std::vector<Problem> problems;    // of files: a syntax error, a missing module

    const LayerSource* find(std::string_view name) const;
};

// The layers that `layers.py` or `layers/__init__.py` offers: the classes defined there, and those
// it imports from modules of the same package. No such file: an empty list.
LayerList read_layers(const PackageSources& package);

struct FunctionList {
    std::vector<FunctionSource> functions;
    std::vector<Problem> problems;
};

// The functions that `__init__.py` offers: its own, and those it imports from its package.
FunctionList read_functions(const PackageSources& package);

// What one name of a file stands for: a function, a layer, or neither.
struct NamedSource {
    std::optional<FunctionSource> function;  // can_torch_compile is true where nothing is said
    std::optional<LayerSource> layer;
    std::vector<std::string> names;  // where it is neither: what the file offers
    std::vector<Problem> problems;   // a syntax error: then there is nothing else
};
NamedSource read_named(const PackageSources& package, const std::string& file,
                       const std::string& name);

}  // namespace twinkle::kernel
