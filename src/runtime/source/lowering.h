#pragma once
// Lowers Python syntax trees to the trees of LibTorch's own frontend, which then types and compiles
// them. LibTorch's parser is not used: it refuses much (f-strings, decorators, keyword markers)
// that its compiler takes. What has no counterpart is refused with file, line and construct.

#include "python/syntax_tree.h"

#include <torch/csrc/jit/frontend/tree_views.h>

#include <memory>
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
    const std::string& path() const { return path_; }
    const std::shared_ptr<torch::jit::Source>& source() const { return source_; }

private:
    std::string path_;
    std::shared_ptr<torch::jit::Source> source_;
};

// Deferred: a name that the type resolver answers, one per concrete type of an argument.
torch::jit::Expr type_reference(const std::string& name);

torch::jit::Expr lower_expression(const SourceFile& file, const python::Expr& expr);

struct LoweredParameter {
    std::string name;
    std::string type;  // a name for type_reference()
};

// A function under a new name whose parameters have the given types. Parameters of the definition
// that are not among `parameters` must have a default, which becomes an assignment in front of the
// body.
torch::jit::Def lower_function(const SourceFile& file, const python::FunctionDef& function,
                               const std::string& name,
                               const std::vector<LoweredParameter>& parameters);

}  // namespace twinkle::runtime
