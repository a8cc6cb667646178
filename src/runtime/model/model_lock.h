#pragma once
// Serializes changes of models that share their code, as copies in memory do.

#include <torch/script.h>

#include <memory>
#include <mutex>
#include <vector>

namespace twinkle::runtime {

// Locks every compilation unit that the model's classes live in. Recursive.
class ModelLock {
public:
    explicit ModelLock(const torch::jit::Module& model);

private:
    // Destroyed in reverse: the locks go before the mutexes.
    std::vector<std::shared_ptr<std::recursive_mutex>> mutexes_;
    std::vector<std::unique_lock<std::recursive_mutex>> locks_;
};

}  // namespace twinkle::runtime
