#pragma once
// The Python that has no counterpart in TorchScript: what the lowering of layers refuses
// (src/runtime/source), and what is told of a kernel without LibTorch.

#include <optional>
#include <string>
#include <string_view>

#include "python/syntax_tree.h"

namespace twinkle::kernel {

// Why a statement or expression inside of a function cannot be compiled; none: it can, as far as
// it alone goes. Those below it are asked for separately.
std::optional<std::string> refused_construct(const python::Node& node);

// "*args or **kwargs in the parameters of f".
std::optional<std::string> refused_parameters(const python::Arguments& arguments,
                                              std::string_view name);

// "Match has no counterpart in TorchScript".
std::string no_counterpart(const python::Node& node);

// Whether evaluating it twice costs little and has no effect: names, x.shape[0], x.dim().
bool is_simple(const python::Expr& expr);

// What a context manager of a `with`, by its full name, means to a compiled function.
enum class Context { unknown, none, no_grad, enable_grad };
Context context_of(std::string_view manager);

// "%d of %s" % …: TorchScript prints numbers in another way, which matters but in a message.
bool is_percent_format(const python::Node& node);

// eval, setattr, …: built-in functions that need an interpreter.
bool is_refused_builtin(std::string_view name);

}  // namespace twinkle::kernel
