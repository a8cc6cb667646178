#pragma once
// The Python that has no counterpart in TorchScript, in one place. It says the same as the lowering
// that meets it when a layer is compiled (src/runtime/source): what is refused there is refused
// here, so that it can be told without LibTorch.

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

// "%d of %s" % …: TorchScript prints numbers in another way, which matters but in a message.
bool is_percent_format(const python::Node& node);

// eval, setattr, …: built-in functions that need an interpreter.
bool is_refused_builtin(std::string_view name);

}  // namespace twinkle::kernel
