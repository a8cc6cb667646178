#include "runtime/graph/sites.h"

#include "base/text.h"
#include "runtime/graph/class_name.h"

#include <unordered_set>

namespace twinkle::runtime {

namespace {

class Collector {
public:
    std::vector<Instance> found;

    void collect(const torch::jit::Module& module, const std::string& path) {
        const auto object = module._ivalue();
        if (!seen_.insert(object.get()).second) {
            return;
        }
        const auto type = module.type();
        found.push_back({path, unmangled(type->name()->qualifiedName()), module});
        for (std::size_t i = 0; i < type->numAttributes(); ++i) {
            if (type->getAttribute(i)->is_module()) {
                const std::string& name = type->getAttributeName(i);
                collect(object->getSlot(i).toModule(), path.empty() ? name : path + "." + name);
            }
        }
    }

private:
    std::unordered_set<const void*> seen_;
};

}  // namespace

std::vector<Instance> instances_of(const torch::jit::Module& root) {
    Collector collector;
    collector.collect(root, "");
    return std::move(collector.found);
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
