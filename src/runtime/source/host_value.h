#pragma once
// `self` in a layer's forward: the instance of the saved model that the layer takes over.

#include <torch/csrc/jit/frontend/sugared_value.h>

#include <map>
#include <set>
#include <string>

namespace twinkle::runtime {

using AttributeMap = std::map<std::string, c10::IValue>;

// What a layer may find on top of the attributes that the instance has.
struct HostAttributes {
    AttributeMap supplied;                        // by the manifest, or found in the graph
    std::map<std::string, std::string> withheld;  // nearly found: why they are not told
    // Parameters that callers pass as inputs: which input of the layer's method (self is 0). They
    // come before the instance's own, which share their storage: gradients go to what was passed.
    std::map<std::string, std::size_t> passed;
};

// What LibTorch's compiler asks for the first parameter of a method. What the class has comes
// before what is supplied.
struct HostSelf : torch::jit::Self {
    HostSelf(c10::ClassTypePtr class_type, HostAttributes host_attributes)
        : type(std::move(class_type)), attributes(std::move(host_attributes)) {}

    std::shared_ptr<torch::jit::SugaredValue> makeSugared(torch::jit::Value* v) const override;
    c10::ClassTypePtr getClassType() const override { return type; }

    c10::ClassTypePtr type;
    HostAttributes attributes;
    // What the layer declares as a tensor or module. Those no trace loses, so where one is missing
    // it was never there.
    std::set<std::string> kept_by_traces;
};

// A module as a value: the host, or a module below it.
std::shared_ptr<torch::jit::SugaredValue> module_value(torch::jit::Value* value,
                                                       const HostSelf* host);

}  // namespace twinkle::runtime
