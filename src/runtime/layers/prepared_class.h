#pragma once
// A class whose instances get weights that a kernel's layer makes from theirs, once, while the
// model is kernelized: the layer's method `prepare` returns them by name. Names of the instance are
// replaced, others are added.

#include "runtime/layers/replacement.h"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace twinkle::runtime {

// While the layer is being fitted: what it prepares is declared on the class, and taken back at the
// end unless it is kept.
class PreparedClass {
public:
    explicit PreparedClass(c10::ClassTypePtr type) : type_(std::move(type)) {}
    ~PreparedClass();
    PreparedClass(const PreparedClass&) = delete;
    PreparedClass& operator=(const PreparedClass&) = delete;

    // Compiles the layer's `prepare`, if it has one, and declares the names that it adds.
    tl::expected<void, std::string> declare(const HostedLayer& layer);
    void keep() { kept_ = true; }

private:
    c10::ClassTypePtr type_;
    std::vector<std::string> added_;  // attributes
    std::string method_;
    bool kept_ = false;
};

}  // namespace twinkle::runtime
