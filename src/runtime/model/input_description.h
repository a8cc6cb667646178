#pragma once
// Inputs in words: "int64[1,128]:0..32000;(float16[1,128,512];float16[1,128,512])".

#include <torch/script.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

constexpr std::uint64_t most_input_bytes = 4ull << 30;
constexpr int deepest_input = 8;  // tuples and lists in each other

// Each is dtype, shape and (optionally) a half-open range; floating point without a range is drawn
// from the standard normal distribution. A tuple is in parentheses, a list of tensors in brackets.
// The seed is fixed. Throws Error(malformed).
std::vector<c10::IValue> described_inputs(const std::string& text);

// Describes in these words, without a range; none: it holds something else than tensors, or
// nothing, or is nested more deeply than inputs may be.
std::optional<std::string> description_of(const c10::IValue& value);

// "float32", "int64", …; LibTorch's own name for types that inputs cannot have.
std::string dtype_name(at::ScalarType dtype);

// Throws Error(malformed).
[[noreturn]] void not_inputs(const std::string& where, const std::string& why);

}  // namespace twinkle::runtime
