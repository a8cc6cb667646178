#include "runtime/replay/graph_model.h"

#include "runtime/replay/graph_obstacles.h"
#include "runtime/verify/run_error.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/api/function_impl.h>

namespace twinkle::runtime {

namespace jit = torch::jit;

GraphModel::GraphModel(jit::Module model, bool freeze, bool fuse) : module_(std::move(model)) {
    if (!module_.find_method("forward")) {
        throw Error(ErrorCode::malformed, {.what = "the model has no forward()",
                                           .where = module_._ivalue()->name(),
                                           .why = "captured are runs of that method",
                                           .hint = {}});
    }
    obstacle_ = device_obstacle(module_).value_or("");
    const bool frozen = freeze && !is_training() && freeze_it();
    if (obstacle_.empty()) {
        obstacle_ = graph_obstacle(*module_.get_method("forward").graph()).value_or("");
    }
    if (frozen && !fuse && obstacle_.empty()) {
        // A frozen graph has nothing left to specialize: no profiling, no compiling for a new
        // shape. LibTorch's own switch for that is process-wide. Runs that are never captured keep
        // LibTorch's settings, which are faster for them.
        auto& function = jit::toGraphFunction(module_.get_method("forward").function());
        function._set_initial_executor_execution_mode(jit::ExecutorExecutionMode::SIMPLE);
        uncaptured_.emplace(function.graph()->copy(), function.name());
    }
    for (const at::Tensor& parameter : module_.parameters()) {
        wants_gradients_ = wants_gradients_ || parameter.requires_grad();
    }
}

bool GraphModel::freeze_it() {
    try {
        module_ = jit::freeze(module_);
        return true;
    } catch (const std::exception& error) {
        not_frozen_ = run_error(error.what());
        return false;
    }
}

bool GraphModel::is_training() const {
    return module_.hasattr("training") && module_.is_training();
}

std::vector<c10::IValue> GraphModel::arguments(std::vector<c10::IValue> inputs,
                                               const jit::Kwargs& named) const {
    const jit::Method forward = module_.get_method("forward");
    inputs.insert(inputs.begin(), module_._ivalue());
    forward.function().getSchema().checkAndNormalizeInputs(inputs, named);
    inputs.erase(inputs.begin());
    return inputs;
}

c10::IValue GraphModel::run(const std::vector<c10::IValue>& arguments) const {
    return module_.get_method("forward")(arguments);
}

c10::IValue GraphModel::run_uncaptured(const std::vector<c10::IValue>& arguments) const {
    if (!uncaptured_) {
        return run(arguments);
    }
    jit::Stack stack{module_._ivalue()};
    stack.insert(stack.end(), arguments.begin(), arguments.end());
    uncaptured_->run(stack);
    return stack.back();
}

}  // namespace twinkle::runtime
