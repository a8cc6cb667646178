#pragma once
// `twinkle tree`: which kernels the project uses, and what those use.

#include <string>
#include <vector>

#include "operations/context.h"
#include "project/lock.h"

namespace twinkle::operations {

struct TreeNode {
    std::string kernel;  // "org/name@1", or the name of a local kernel
    std::string ref;
    std::string commit;                 // empty: local
    std::string path;                   // of a local kernel
    std::vector<std::string> variants;  // that need it; empty: all of the parent's
    bool missing = false;               // the lock does not have it
    std::vector<TreeNode> dependencies;
};

struct DependencyTree {
    std::vector<TreeNode> kernels;
    bool locked = false;  // from the lock; false: what the manifest means now
};

DependencyTree dependency_tree(Context& context);

}  // namespace twinkle::operations
