#pragma once
// `self` in a layer's forward: the instance of the saved model that the layer takes over.

#include <torch/csrc/jit/frontend/sugared_value.h>

#include <map>
#include <set>
#include <string>

namespace twinkle::runtime {

using AttributeMap = std::map<std::string, c10::IValue>;

// What LibTorch's compiler asks for the first parameter of a method. Attributes that the saved
// model has lost are answered from `supplied`; what the class has comes first.
struct HostSelf : torch::jit::Self {
    HostSelf(c10::ClassTypePtr class_type, AttributeMap supplied_attributes)
        : type(std::move(class_type)), supplied(std::move(supplied_attributes)) {}

    std::shared_ptr<torch::jit::SugaredValue> makeSugared(torch::jit::Value* v) const override;
    c10::ClassTypePtr getClassType() const override { return type; }

    c10::ClassTypePtr type;
    AttributeMap supplied;
    // What the layer declares as a tensor or module. Those no trace loses, so where one is missing
    // it was never there.
    std::set<std::string> kept_by_traces;
};

// A module as a value: the host, or a module below it.
std::shared_ptr<torch::jit::SugaredValue> module_value(torch::jit::Value* value,
                                                       const HostSelf* host);

}  // namespace twinkle::runtime
