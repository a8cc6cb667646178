#pragma once
// Which instances of a model can share a class.

#include "runtime/classes/own_class.h"

#include <torch/script.h>

#include <vector>

namespace twinkle::runtime {

// One instance, and where it holds others.
struct TreeObject {
    torch::jit::Module module;
    struct Child {
        std::size_t slot;
        std::size_t object;  // index of a TreeObject
        bool typed;          // by the class of the child; an interface does not tell it
    };
    std::vector<Child> children;
    std::size_t group = 0;
};

// Instances of one class that are treated alike, and whose children are in the same groups.
struct ClassGroup {
    c10::ClassTypePtr type;
    std::vector<std::size_t> members;  // indices of objects
    bool treated = false;              // otherwise than with 0
};

struct ClassGroups {
    std::vector<TreeObject> objects;  // children before those that hold them; the root is the last
    std::vector<ClassGroup> groups;   // in the same order

    ClassGroups(const torch::jit::Module& root, const Treatments& treatments);
};

}  // namespace twinkle::runtime
