#include "runtime/rewrite/sites.h"

#include "base/text.h"
#include "runtime/rewrite/class_name.h"

#include <unordered_set>

namespace twinkle::runtime {

namespace {

void collect(const torch::jit::Module& module, const std::string& path,
             std::unordered_set<const void*>& seen, std::vector<Instance>& found) {
    if (!seen.insert(module._ivalue().get()).second) {
        return;
    }
    found.push_back({path, unmangled(module.type()->name()->qualifiedName()), module});
    for (const auto& child : module.named_children()) {
        collect(child.value, path.empty() ? child.name : path + "." + child.name, seen, found);
    }
}

}  // namespace

std::vector<Instance> instances_of(const torch::jit::Module& root) {
    std::unordered_set<const void*> seen;
    std::vector<Instance> found;
    collect(root, "", seen, found);
    return found;
}

torch::jit::Module instance_at(const torch::jit::Module& root, const std::string& path) {
    torch::jit::Module module = root;
    if (path.empty()) {
        return module;
    }
    for (const std::string& name : base::split(path, '.')) {
        module = module.attr(name).toModule();
    }
    return module;
}

}  // namespace twinkle::runtime
