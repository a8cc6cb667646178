#pragma once
// What models hold beside their parameters, for runs that are to begin alike: a model may count or
// average in its buffers.

#include <torch/script.h>

#include <cstddef>
#include <vector>

namespace twinkle::runtime {

class KeptState {
public:
    void add(const torch::jit::Module& model);
    // Restores the state as it was when it was added, in the same tensors.
    void restore() const;

private:
    struct Slot {
        c10::intrusive_ptr<c10::ivalue::Object> object;
        std::size_t number;
        at::Tensor tensor, values;
    };
    std::vector<Slot> slots_;
};

}  // namespace twinkle::runtime
