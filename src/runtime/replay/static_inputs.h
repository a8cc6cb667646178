#pragma once
// The inputs that a captured run reads: those of every call are copied into them.

#include "runtime/model/nested_values.h"

#include <string>

namespace twinkle::runtime {

class StaticInputs {
public:
    // Makes copies. They track writes to them, in whatever mode they are made.
    explicit StaticInputs(const Values& inputs);

    const Values& values() const { return values_; }
    void copy_from(const Values& inputs);  // need the same structure, shapes and dtypes

    // Whether a run on `inputs` has written into them: a replay works on copies, so that the caller
    // would not see it. Compares values, too, as not every kernel declares that it writes.
    bool were_written(const Values& inputs) const;

private:
    Values values_;
    std::vector<at::Tensor> tensors_;
    std::vector<std::uint32_t> versions_;
};

}  // namespace twinkle::runtime
