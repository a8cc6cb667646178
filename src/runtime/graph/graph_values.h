#pragma once
// What a value in a graph is: a constant, an attribute of self, an input under another dtype.

#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <string>

namespace twinkle::runtime {

// The value under casts and views that change no number's meaning: x of x.to(float32),
// x.detach(), x.contiguous().
const torch::jit::Value* behind_casts(const torch::jit::Value* value);

// Whether a value is an input of the graph under another dtype or view at most.
bool passes_through(const torch::jit::Value* value);

// The value of a constant, of a list of constants, or, as a number, of a 0-dim tensor (which is
// what a trace makes of a Python float).
std::optional<c10::IValue> constant_value(const torch::jit::Value* value);
std::optional<double> constant_number(const torch::jit::Value* value);

// The name of the attribute of self that the value is.
std::optional<std::string> own_attribute(const torch::jit::Value* value);

// What a value is in a model whose object is the graph's first input: a constant, or an attribute
// of it or of modules in it.
std::optional<c10::IValue> held_value(const torch::jit::Value* value,
                                      const c10::ivalue::Object& self);

}  // namespace twinkle::runtime
