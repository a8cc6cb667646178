#pragma once
// Lowers the statements of one function.

#include "runtime/source/lowering_scope.h"

#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

class Statements {
public:
    explicit Statements(FunctionScope& scope) : file_(scope.file), scope_(scope) {}

    torch::jit::List<torch::jit::Stmt> body(const python::FunctionDef& function,
                                            std::vector<torch::jit::Stmt> first);
    torch::jit::Stmt assignment(const python::Node& at, const std::string& name,
                                const torch::jit::Expr& value,
                                const std::optional<torch::jit::Expr>& type);

private:
    using Range = torch::jit::SourceRange;

    torch::jit::List<torch::jit::Stmt> block(const python::Block& body);
    // Whether nothing behind them is reached.
    bool lower(const python::Block& body, std::vector<torch::jit::Stmt>& out);
    bool lower(const python::Stmt& statement, std::vector<torch::jit::Stmt>& out);
    torch::jit::Expr expression(const python::Expr& expr) { return lower_expression(scope_, expr); }
    torch::jit::Expr message(const python::Expr& expr);
    bool condition(const python::If& node, std::vector<torch::jit::Stmt>& out);
    bool with(const python::With& node, std::vector<torch::jit::Stmt>& out);
    torch::jit::Stmt with_grad(bool enabled, const Range& range,
                               const torch::jit::List<torch::jit::Stmt>& body);
    void learn(const python::Assign& node);
    void forget(const python::Node& statement);
    torch::jit::Stmt assign(const python::Assign& node, const Range& range);
    torch::jit::Expr assigned_value(const python::Assign& node);
    torch::jit::Stmt annotated(const python::AnnAssign& node, const Range& range);
    torch::jit::Stmt plain_assign(const python::Expr& target, const torch::jit::Expr& value,
                                  const Range& range, const std::string& type);
    torch::jit::Stmt augmented(const python::AugAssign& node, const Range& range);
    torch::jit::Stmt for_loop(const python::For& node, const Range& range);

    const SourceFile& file_;
    FunctionScope& scope_;
    int depth_ = 0;  // of blocks
};

// The type Optional[Tensor].
torch::jit::Expr optional_tensor(const torch::jit::SourceRange& range);

}  // namespace twinkle::runtime
