#pragma once
// Operations that Python and TorchScript write alike and compute differently: what is true, what is
// equal, how a value is printed. Emitted with Python's meaning, or refused.

#include <torch/csrc/jit/frontend/sugared_value.h>

#include <memory>

namespace twinkle::runtime {

using EmittedArguments = at::ArrayRef<torch::jit::NamedValue>;
using EmittedValue = std::shared_ptr<torch::jit::SugaredValue>;

// Whether a value is true: a text, list, tuple or dictionary that has elements.
EmittedValue emit_truth(const torch::jit::SourceRange& loc, torch::jit::GraphFunction& m,
                        EmittedArguments args);

// (a, b, kind of a, kind of b), the kinds as the source tells them: "tuple", "list", "unknown".
EmittedValue emit_equal(const torch::jit::SourceRange& loc, torch::jit::GraphFunction& m,
                        EmittedArguments args);

// (format, values…): f"…{a}…" whose text is used.
EmittedValue emit_text(const torch::jit::SourceRange& loc, torch::jit::GraphFunction& m,
                       EmittedArguments args);

// (value, conversion, specification): a part of it that says how it is printed.
EmittedValue emit_format(const torch::jit::SourceRange& loc, torch::jit::GraphFunction& m,
                         EmittedArguments args);

}  // namespace twinkle::runtime
