#pragma once
// Operators as nodes of a flat graph, in their one form.

#include "runtime/patterns/attribute_reads.h"
#include "runtime/patterns/flat_builder.h"
#include "runtime/patterns/flat_rules.h"

#include <array>
#include <unordered_map>
#include <utility>

namespace twinkle::runtime {

bool is_writing(const torch::jit::Node* node);

class FlatOperations {
public:
    FlatOperations(FlatBuilder& to, AttributeReads& attributes)
        : to_(to), attributes_(attributes) {}

    void add(torch::jit::Node* node, std::int32_t frame, std::int32_t block_id);

private:
    using Inputs = c10::SmallVector<ValueId, 5>;

    // What is computed of sizes: where, by what, of which constants or values.
    struct NumberKey {
        c10::Symbol op;
        std::int32_t frame, block;
        std::array<std::pair<bool, std::int64_t>, 2> inputs;

        bool operator==(const NumberKey&) const = default;
    };
    struct NumberHash {
        std::size_t operator()(const NumberKey& key) const {
            std::size_t hash = static_cast<c10::unique_t>(key.op);
            for (const std::int64_t one : {std::int64_t{key.frame}, std::int64_t{key.block},
                                           key.inputs[0].second, key.inputs[1].second}) {
                hash = hash * 0x9e3779b97f4a7c15 + static_cast<std::size_t>(one);
            }
            return hash;
        }
    };

    Inputs inputs_of(const Normal& normal, std::int32_t frame);
    ValueId part_of(ValueId whole, std::int64_t index, torch::jit::Node* node, std::int32_t frame,
                    std::int32_t block_id);
    ValueId& number_of(c10::Symbol op, const Inputs& inputs, std::int32_t frame,
                       std::int32_t block_id);

    FlatBuilder& to_;
    AttributeReads& attributes_;
    std::unordered_map<NumberKey, ValueId, NumberHash> numbers_;
};

}  // namespace twinkle::runtime
