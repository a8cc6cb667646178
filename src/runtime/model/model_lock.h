#pragma once
// Models that share their code (copies in memory do) are changed one after the other.

#include <torch/script.h>

#include <memory>
#include <mutex>
#include <vector>

namespace twinkle::runtime {

// Holds every compilation unit that the model's classes live in. The same thread may take it again.
class ModelLock {
public:
    explicit ModelLock(const torch::jit::Module& model);

private:
    // Destroyed in reverse: the locks go before the mutexes.
    std::vector<std::shared_ptr<std::recursive_mutex>> mutexes_;
    std::vector<std::unique_lock<std::recursive_mutex>> locks_;
};

}  // namespace twinkle::runtime
