#pragma once
// Weights as a layer finds them in a large model: in memory. By the time that it is called again,
// other layers have pushed its own out of the caches. A site that is measured alone finds them
// there, and another kernel may be the fastest then.

#include <torch/script.h>

#include <cstdint>
#include <unordered_set>

namespace twinkle::runtime {

// The parameters of a model, and the constants that freezing has made of them, by their storage.
class ModelWeights {
public:
    ModelWeights() = default;
    explicit ModelWeights(const torch::jit::Module& model);

    bool has(const at::Tensor& tensor) const;
    // They lie on the CPU, and are more than its caches hold. Caches are shared with other
    // programs, and virtual machines tell sizes that are not theirs, so the size is not asked for.
    bool exceed_caches() const { return bytes_ >= exceeding; }

private:
    void add(const at::Tensor& weight);

    static constexpr std::int64_t exceeding = std::int64_t{64} << 20;

    std::unordered_set<const void*> storages_;
    std::int64_t bytes_ = 0;  // on the CPU
};

// Writes what caches hold of a tensor's storage back to memory. Does nothing but on x86-64.
void evict_from_caches(const at::Tensor& tensor);

}  // namespace twinkle::runtime
