#include "runtime/rewrite/forward_methods.h"

#include <algorithm>
#include <cctype>

namespace twinkle::runtime {

std::vector<torch::jit::Function*> forward_methods(const c10::ClassTypePtr& type) {
    std::vector<torch::jit::Function*> found;
    for (torch::jit::Function* method : type->methods()) {
        const std::string& name = method->name();
        if (name.starts_with("forward") &&
            std::all_of(name.begin() + 7, name.end(),
                        [](unsigned char c) { return std::isdigit(c); })) {
            found.push_back(method);
        }
    }
    return found;
}

}  // namespace twinkle::runtime
