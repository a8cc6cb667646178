#pragma once
// A call without its data: what kernels are chosen and remembered by. Needs no LibTorch.

#include "twinkle/api.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle {

// What a call is part of. One kernel may be the best for one of these and not for another.
enum class RunMode {
    inference,  // nothing is recorded for gradients
    forward,    // gradients will be asked for
    backward,
};

// "inference", "forward", "backward".
TWINKLE_API std::string_view run_mode_name(RunMode mode);

// One argument. What is in a list of tensors or in a tuple follows it.
struct TWINKLE_API AbstractInput {
    // Of a tensor: "float32", …; else "bool", "int", "ints", "float", "str", "none", "list",
    // "tuple".
    std::string dtype{};
    std::vector<std::int64_t> sizes{};  // of a tensor, in buckets
    // How a tensor lies in memory: "dense"; "rows", where only the last dimension is dense;
    // "channels_last", of images; "strided". Empty: no tensor.
    std::string layout{};
    std::int64_t alignment = 0;  // of a tensor's address in bytes: 1, 2, 4, … 16; 0: not known
    // Of a truth value, integers or a text; of a list or a tuple, how many are in it.
    // Floating-point numbers choose no kernel, and have none.
    std::string value{};

    bool operator==(const AbstractInput&) const = default;
};

struct TWINKLE_API Invocation {
    std::string operation{};  // of an operator, or the site in a model
    std::vector<AbstractInput> inputs{};
    std::string device = "cpu";  // platform: "cpu", "cuda", "rocm"; never an index
    RunMode mode = RunMode::inference;
    bool captured = false;                        // replayed as a part of a CUDA graph
    std::map<std::string, std::string> extras{};  // whatever else decides: how work is divided, …

    bool operator==(const Invocation&) const = default;

    // JSON on one line: sorted keys, no floating-point numbers, equal for equal invocations on
    // every machine. What is empty is left out.
    std::string key() const;
    // SHA-256 of key(), 64 hex digits.
    std::string hash() const;
    // What key() has written. Throws Error(malformed).
    static Invocation from_key(std::string_view key);
};

// The size that stands for `size` in an invocation: the next power of two. 0 stays 0.
TWINKLE_API std::int64_t size_bucket(std::int64_t size);

}  // namespace twinkle
