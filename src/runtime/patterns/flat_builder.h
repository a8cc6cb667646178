#pragma once
// A flat graph while it is made: its frames, values and nodes.

#include "runtime/patterns/flat_graph.h"

#include <string>
#include <vector>

namespace twinkle::runtime {

// What is followed at most; a message.
struct TooLarge {
    std::string what;
};

class FlatBuilder {
public:
    explicit FlatBuilder(const FlatLimits& limits) : limits_(limits) {}

    FlatGraph graph;

    FlatValue& value(ValueId id) { return graph.values[static_cast<std::size_t>(id)]; }
    Frame& frame(std::int32_t id) { return graph.frames[static_cast<std::size_t>(id)]; }
    const c10::SmallVector<FlatInput, 4>* parts_of(ValueId id) const {
        const auto index = graph.value(id).parts;
        return index == nothing ? nullptr : &graph.parts[static_cast<std::size_t>(index)];
    }

    // While it lives, something nests in something else: TooLarge if that is too deep.
    class [[nodiscard]] Nested {
    public:
        explicit Nested(FlatBuilder& builder);
        ~Nested() { --builder_.depth_; }
        Nested(const Nested&) = delete;
        Nested& operator=(const Nested&) = delete;

    private:
        FlatBuilder& builder_;
    };

    std::int32_t enter(std::int32_t parent, torch::jit::Node* call, torch::jit::Function* function,
                       const std::shared_ptr<torch::jit::Graph>& body);
    std::int32_t new_block() { return blocks_++; }

    ValueId fresh(std::int32_t frame, torch::jit::Value* from);
    ValueId bind(std::int32_t frame, const torch::jit::Value* from, ValueId id);
    ValueId known(std::int32_t frame, torch::jit::Value* from);
    // Defines a value that nothing has defined yet.
    ValueId define(std::int32_t frame, torch::jit::Value* from) {
        return bind(frame, from, fresh(frame, from));
    }

    void set_constant(ValueId id, c10::IValue constant);
    void set_parts(ValueId id, c10::SmallVector<FlatInput, 4> parts);
    // It is used where it cannot be followed. Whatever takes a tuple may use its elements, and who
    // has a list may change it.
    void escape(ValueId id);

    FlatNode& add(torch::jit::Node* node, std::int32_t frame, std::int32_t block, c10::Symbol op,
                  bool outputs = true);
    void take(FlatNode& node, ValueId id, torch::jit::Value* from);
    void add_user(ValueId id, const FlatNode& node);
    // Sets what dtype its outputs have; its inputs are known.
    void settle(FlatNode& node);
    void finish();

    std::int32_t writing = 0;  // how many nodes have written into something

private:
    [[noreturn]] void refuse_size() const;

    FlatLimits limits_;
    std::int32_t blocks_ = 0;
    std::int32_t depth_ = 0;
    std::vector<ValueId> escaping_;
};

}  // namespace twinkle::runtime
