#include "runtime/graph/called_instances.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

bool CalledInstances::contains(const jit::Module& instance) const {
    return !calls_.all_followed || calls_.instances.contains(instance._ivalue().get());
}

bool CalledInstances::contains(const jit::Module& instance, const std::string& method) const {
    const bool is_hook = instance.type()->findMethod(method) == nullptr;
    return is_hook ? contains(instance)
                   : !calls_.all_followed ||
                         calls_.methods.contains({instance._ivalue().get(), method});
}

}  // namespace twinkle::runtime
