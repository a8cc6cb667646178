#pragma once
// Expressions of sizes as the archive states them, in Python ("L['x'].size()[1] <= 64") or as
// SymPy prints them ("Add(Mul(Integer(2), Symbol('s0')), Integer(1))"): parsed, and written as
// TorchScript. Nothing is evaluated.

#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace twinkle::python {
struct Expr;
struct Module;
}  // namespace twinkle::python

namespace twinkle::runtime::exported {

// What of an expression has no counterpart.
class UnknownExpression : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

class SizeExpression {
public:
    // Throws UnknownExpression for what is no expression.
    explicit SizeExpression(const std::string& text);
    ~SizeExpression();
    SizeExpression(SizeExpression&&) noexcept;

    struct Names {
        std::map<std::string, torch::jit::Value*> symbols;
        // The tensor or number that L['x'] is, by "['x']"; nullptr: there is none.
        std::function<torch::jit::Value*(const std::string&)> input;
    };
    // Throws UnknownExpression.
    torch::jit::Value* write(torch::jit::Graph& graph, const Names& names) const;

    // "s0" of Symbol('s0', …).
    std::optional<std::string> symbol() const;

    // a·symbol + b, if it is that with a > 0.
    struct Linear {
        std::string symbol;
        std::int64_t factor = 0;
        std::int64_t offset = 0;
    };
    std::optional<Linear> linear() const;

private:
    std::unique_ptr<python::Module> module_;
    const python::Expr* expression_ = nullptr;
};

}  // namespace twinkle::runtime::exported
