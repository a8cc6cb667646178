#pragma once
// What a flat graph knows of the attributes of a model's objects.

#include "runtime/patterns/flat_builder.h"

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace twinkle::runtime {

// Reads of attributes as values: what is read twice is one value, as long as nothing is set.
class AttributeReads {
public:
    // What an attribute is now says nothing if its name is one of those that something sets.
    // `never_trains`: `training` of its modules stays what it is.
    AttributeReads(FlatBuilder& to, std::set<std::string> changing, bool never_trains)
        : to_(to), changing_(std::move(changing)), never_trains_(never_trains) {}

    void set_object(ValueId id, const c10::intrusive_ptr<c10::ivalue::Object>& object);
    void read(torch::jit::Node* node, std::int32_t frame);
    // A SetAttr, or what may do the same.
    void forget(const torch::jit::Node* node);
    const std::set<std::string>& set_names() const { return set_names_; }

private:
    struct Read {
        std::int32_t settings = 0;
        ValueId value = nothing;
    };

    FlatBuilder& to_;
    std::set<std::string> changing_, set_names_;
    bool never_trains_;
    std::int32_t settings_ = 1;  // how often an attribute has been set
    std::unordered_map<const void*, std::int32_t> objects_;
    std::vector<std::vector<Read>> reads_;  // by object and slot
};

}  // namespace twinkle::runtime
