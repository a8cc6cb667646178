#pragma once
// The inputs that a captured run reads: those of every call are copied into them.

#include "runtime/replay/nested_values.h"

#include <string>

namespace twinkle::runtime {

class StaticInputs {
public:
    // Copies of these. They know what is written into them, in whatever mode they are made.
    explicit StaticInputs(const Values& inputs);

    const Values& values() const { return values_; }
    void copy_from(const Values& inputs);  // of the same structure, shapes and dtypes

    // After a run on `inputs`: it has written into them, and a copy of the caller's would not be
    // what the caller sees. Compares what they hold, too: not every kernel says that it writes.
    bool were_written(const Values& inputs) const;

private:
    Values values_;
    std::vector<at::Tensor> tensors_;
    std::vector<std::uint32_t> versions_;
};

}  // namespace twinkle::runtime
