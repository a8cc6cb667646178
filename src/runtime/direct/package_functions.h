#pragma once
// The functions of a kernel's Python package as something to call from C++, compiled on the first
// call with each combination of argument types.

#include "runtime/kernels/loaded_kernels.h"
#include "runtime/source/package_values.h"
#include "twinkle/kernel.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace twinkle::runtime {

class PackageFunctions {
public:
    explicit PackageFunctions(const LoadedKernel& kernel);

    // "gelu_fast", or "layers.helper" for a function of a module. Thread-safe. Throws Error.
    c10::IValue call(const std::string& name, std::vector<c10::IValue> arguments,
                     const Implementation::Keywords& keywords);
    // Whether there is a function of this name.
    bool has(const std::string& name);

private:
    torch::jit::Function& compiled(const std::string& name,
                                   const std::vector<c10::IValue>& arguments,
                                   const Implementation::Keywords& keywords);
    torch::jit::Function& compile(const std::string& name, const std::string& unique,
                                  const std::vector<c10::IValue>& arguments,
                                  const Implementation::Keywords& keywords);

    std::string kernel_name_;
    std::mutex mutex_;  // one compilation at a time
    std::shared_ptr<Compilation> compilation_;
    std::map<std::string, torch::jit::Function*> functions_;  // name and types → compiled
};

}  // namespace twinkle::runtime
