#include "runtime/proof/call_schema.h"
#include "runtime/graph/format.h"

namespace twinkle::runtime {

c10::FunctionSchema call_schema(const Region& region) {
    std::vector<c10::Argument> arguments;
    for (const torch::jit::Value* input : region.inputs) {
        if (input->type()->kind() == c10::TypeKind::TensorType) {
            arguments.emplace_back(fmt::format("input_{}", arguments.size()),
                                   c10::TensorType::get());
        }
    }
    return {"call", "", arguments, {c10::Argument("", c10::TensorType::get())}};
}

}  // namespace twinkle::runtime
