#pragma once
// Lowers Python syntax trees to the trees of LibTorch's own frontend, which then types and compiles
// them. LibTorch's parser is not used: it refuses much (f-strings, decorators, keyword markers)
// that its compiler takes. What has no counterpart is refused with file, line and construct.

#include "kernel/constructs.h"
#include "python/syntax_tree.h"

#include <torch/csrc/jit/frontend/tree_views.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace twinkle::runtime {

// "layers.py:12: try statement" …: a normal outcome, turned into a report entry by the layer
// compiler.
class CannotCompile : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// The source file that a tree comes from, for positions in messages and in saved models.
class SourceFile {
public:
    SourceFile(const std::string& path, const std::string& text);

    torch::jit::SourceRange range(const python::Node& node) const;
    [[noreturn]] void refuse(const python::Node& node, const std::string& construct) const;
    void check(const python::Node& node) const;  // refuses what kernel/constructs.h says
    const std::string& path() const { return path_; }
    const std::shared_ptr<torch::jit::Source>& source() const { return source_; }

private:
    std::string path_;
    std::shared_ptr<torch::jit::Source> source_;
};

// Deferred: a name that the type resolver answers, one per concrete type of an argument.
torch::jit::Expr type_reference(const std::string& name);

struct LoweredParameter {
    std::string name;
    std::string type;  // a name for type_reference()
    // None, True, "silu" …: a value that is known while compiling. It is no parameter of the
    // compiled function then, and conditions on it are decided.
    std::optional<python::ConstantValue> constant = std::nullopt;
    bool is_module = false;
    bool is_passed = false;  // beside a constant: the value is passed all the same
    bool in_rest = false;    // an element of *args
};

// What an autograd.Function keeps in its ctx, where it is known while compiling: a flag that
// forward stores decides what of backward there is.
struct StoredValues {
    std::string ctx;  // the parameter of the method that is being lowered
    std::map<std::string, python::ConstantValue> known;
};

// What a function's names mean beyond its own text; answered by the compilation.
struct NameScope {
    // Whether the module (or an import in the function) binds a name.
    std::function<bool(const std::string&)> binds;
    // A name for type_reference(), empty if the annotation is none that TorchScript has.
    std::function<std::string(const python::Expr&)> annotation;
    std::function<std::string(const python::Expr&)> optional_annotation;  // the same, or None
    // What a context manager of a `with` stands for.
    std::function<kernel::Context(const python::Expr&)> context;
    // "functools.partial": what a name that comes from elsewhere is called there.
    std::function<std::string(const python::Expr&)> external;
    bool no_grad = false;  // the whole body (a decorator)
    StoredValues* stored = nullptr;
};

// Names that lowered trees use for what only the resolver can do; no Python name looks like them.
namespace lowered_name {
inline constexpr const char* prefix = "_TwinkleName_";
inline constexpr const char* sequence = "_TwinkleName_sequence";    // (*a, b): tuple or list
inline constexpr const char* listed = "_TwinkleName_listed";        // [*a, b]
inline constexpr const char* sizes = "_TwinkleName_sizes";          // view(*a, b)
inline constexpr const char* text = "_TwinkleName_text";            // f"…" as a value
inline constexpr const char* power = "_TwinkleName_power";          // a ** b
inline constexpr const char* module = "_TwinkleName_module";        // a parameter that is a module
inline constexpr const char* no_grad = "_TwinkleName_no_grad";      // with torch.no_grad()
inline constexpr const char* grad = "_TwinkleName_enable_grad";     // with torch.enable_grad()
inline constexpr const char* flag = "_TwinkleName_flag";            // an operand of and, or
inline constexpr const char* truth = "_TwinkleName_truth";          // if a: for texts and tuples
inline constexpr const char* format = "_TwinkleName_format";        // f"{a:>4}"
inline constexpr const char* equal = "_TwinkleName_equal";          // a == b of sequences
inline constexpr const char* partial = "_TwinkleName_partial";      // f.partial(…): an attribute
inline constexpr const char* is_module = "_TwinkleName_is_module";  // isinstance(self.a, nn.Linear)
inline constexpr const char* has_grad = "_TwinkleName_has_grad";    // torch.is_grad_enabled()
inline constexpr const char* own = "_TwinkleName_own_";             // a name that hides a builtin
}  // namespace lowered_name

// A function under a new name whose parameters have the given types. Parameters of the definition
// that are not among `parameters` must have a default, which becomes an assignment in front of the
// body; *args and **kwargs are empty.
torch::jit::Def lower_function(const SourceFile& file, const python::FunctionDef& function,
                               const std::string& name,
                               const std::vector<LoweredParameter>& parameters,
                               const NameScope& scope);

// `value` as a function without parameters: a constant of a module.
torch::jit::Def lower_constant(const SourceFile& file, const python::Expr& value,
                               const std::string& name, const NameScope& scope);

}  // namespace twinkle::runtime
