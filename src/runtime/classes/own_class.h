#pragma once
// Instances of a scripted model share a class. Those that are treated differently get classes of
// their own, and so do the modules that hold them.

#include <torch/script.h>

#include <tl/expected.hpp>

#include <cstddef>
#include <string>
#include <unordered_map>

namespace twinkle::runtime {

// How each instance is to be treated, by its object (module._ivalue().get()); any number will do,
// and 0 is that of all which are not named.
using Treatments = std::unordered_map<const void*, std::size_t>;

// Why instances of a class cannot be told apart: the model itself treats them as one.
struct NotSeparable {
    c10::ClassTypePtr type;
    std::string because;
};

// Afterwards no two instances of one class are treated differently. As few classes as that takes
// are cloned, with their constants, methods, hooks and properties, and all graphs on the way are
// retyped. Weights are not copied. Instances of a cloned class become new objects, under every name
// that they had; the root stays what it is. On an error the model is as it was, else this is
// whether anything has changed.
tl::expected<bool, NotSeparable> separate_classes(torch::jit::Module& root,
                                                  const Treatments& treatments);

}  // namespace twinkle::runtime
