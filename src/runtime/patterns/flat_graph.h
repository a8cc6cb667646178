#pragma once
// What a graph computes, as one list: calls of methods and functions followed, tuples taken apart,
// and what tracing and scripting write differently written in one way. The graph itself stays as it
// is; every flat node knows where it comes from.
//
// Written in one way: casts to the dtype that a value is known to have, dropout that is switched
// off and conversions of sizes are no nodes at all; pow(x, 2) and square(x) are mul(x, x), 1 /
// sqrt(x) is rsqrt(x), a - b has no alpha, clamp(x, 0, 6) is relu6(x), convolutions of two
// dimensions are conv2d, all ways to cast are "cast(x, dtype)"; constants given
// as tensors without dimensions are numbers; what is written in place is a new value where nobody
// can tell the difference (in_place.h); of an `if` on a flag that is known only the branch taken is
// there.

#include <torch/script.h>

#include <c10/util/SmallVector.h>

#include <tl/expected.hpp>

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

namespace twinkle::runtime {

inline c10::Symbol symbol(const char* name) {
    return c10::Symbol::fromQualString(name);
}

using ValueId = std::int32_t;
constexpr std::int32_t nothing = -1;

struct FlatInput {
    ValueId value = nothing;
    std::int32_t frame = 0;             // in the graph of which …
    torch::jit::Value* from = nullptr;  // … this is read
};

struct FlatNode {
    c10::Symbol op;
    torch::jit::Node* node = nullptr;
    std::int32_t frame = 0;
    std::int32_t block = 0;
    std::int32_t merged = nothing;  // another flat node that is part of this one
    bool is_in_place = false;       // writes into its first input; `op` is what it computes
    c10::SmallVector<FlatInput, 4> inputs;
    c10::SmallVector<ValueId, 1> outputs;
};

enum class ValueKind { tensor, number, tuple, module, other };

struct FlatValue {
    ValueKind kind = ValueKind::other;
    c10::ScalarType dtype = c10::ScalarType::Undefined;  // of a tensor, where it is known
    bool escapes = false;  // used where it cannot be followed: returned, or in an opaque node
    std::int32_t node = nothing;        // flat node that computes it
    std::int32_t output = 0;            // … as which of its outputs
    std::int32_t constant = nothing;    // index of constants
    std::int32_t parts = nothing;       // index of parts: what a tuple or list is made of
    std::int32_t object = nothing;      // index of objects
    std::int32_t frame = 0;             // where it is defined …
    torch::jit::Value* from = nullptr;  // … and as what
    c10::SmallVector<std::int32_t, 2> users;
};

// One call of a function or method, or the graph itself.
struct Frame {
    std::int32_t parent = nothing;
    torch::jit::Node* call = nullptr;  // in the parent's graph
    std::shared_ptr<torch::jit::Graph> graph;
    torch::jit::Function* function = nullptr;
    const void* object = nullptr;  // of the module whose method it is; null for a function
    std::int32_t depth = 0;
    std::int32_t nodes = 0;       // flat nodes in it and in the calls that it makes
    std::vector<ValueId> values;  // by what its graph calls them (Value::unique)
};

struct FlatGraph {
    std::vector<FlatNode> nodes;
    std::vector<FlatValue> values;
    std::vector<Frame> frames;
    std::vector<c10::IValue> constants;
    std::vector<c10::SmallVector<FlatInput, 4>> parts;
    std::vector<c10::intrusive_ptr<c10::ivalue::Object>> objects;
    std::vector<std::int32_t> writes;  // by node: how many before it write into something
    std::unordered_map<c10::Symbol, std::vector<std::int32_t>> by_op;
    bool has_stand_ins = false;  // calls that an earlier kernelize has put there

    const FlatValue& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
    const FlatNode& node(std::int32_t id) const { return nodes[static_cast<std::size_t>(id)]; }
    const Frame& frame(std::int32_t id) const { return frames[static_cast<std::size_t>(id)]; }
    const FlatNode* node_of(ValueId id) const {
        return value(id).node == nothing ? nullptr : &node(value(id).node);
    }
    const c10::IValue* constant_of(ValueId id) const {
        const auto index = value(id).constant;
        return index == nothing ? nullptr : &constants[static_cast<std::size_t>(index)];
    }
    ValueId value_in(std::int32_t frame_id, const torch::jit::Value* from) const {
        const auto& known = frame(frame_id).values;
        return from->unique() < known.size() ? known[from->unique()] : nothing;
    }
};

// What is followed at most; more is an error, not a wait.
struct FlatLimits {
    std::size_t nodes = 500'000;
    std::int32_t depth = 200;  // of calls and blocks in each other
};

// All that the methods of the root call. The error says what is too large. `never_trains`: what
// `training` of its modules is now says what is computed.
tl::expected<FlatGraph, std::string> flatten(const torch::jit::Module& root, bool never_trains,
                                             const FlatLimits& limits = {});

// One graph by itself; its inputs are the first values, in their order.
tl::expected<FlatGraph, std::string> flatten(const std::shared_ptr<torch::jit::Graph>& graph,
                                             std::vector<FlatInput>& results,
                                             const FlatLimits& limits = {});

// Operators that only flat graphs have.
c10::Symbol cast_op();   // (tensor, dtype)
c10::Symbol items_op();  // (list): its elements, as outputs

}  // namespace twinkle::runtime
