#pragma once
// Tensors on their way from a child process: values in shared memory, the rest as JSON.

#include "base/json.h"
#include "runtime/prepare/prepared_weights.h"
#include "runtime/trial/shared_memory.h"

#include <tl/expected.hpp>

#include <cstddef>
#include <string>

namespace twinkle::runtime {

// Works in the child.
class TensorSender {
public:
    explicit TensorSender(const SharedMemory& memory) : memory_(memory) {}

    // Throws std::runtime_error where they are larger than the memory.
    base::Json put(const NamedTensors& tensors);

private:
    const SharedMemory& memory_;
    std::size_t used_ = 0;
};

// Returns in the parent, which trusts nothing, copies of the tensors, if they are what this class
// has.
tl::expected<NamedTensors, std::string> received_tensors(const SharedMemory& memory,
                                                         const base::Json& sent,
                                                         const c10::ClassType& type);

}  // namespace twinkle::runtime
