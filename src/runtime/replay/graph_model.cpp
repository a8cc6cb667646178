#include "runtime/replay/graph_model.h"

#include "runtime/replay/early_values.h"
#include "runtime/replay/gather_weights.h"
#include "runtime/replay/graph_obstacles.h"
#include "runtime/verify/run_error.h"
#include "twinkle/error.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// Nothing to specialize: no profiling, no compiling for a new shape. LibTorch's own switch for that
// is process-wide.
constexpr auto unspecialized = jit::ExecutorExecutionMode::SIMPLE;

bool any_wants_gradients(const jit::Module& model) {
    bool any = false;
    for (const at::Tensor& parameter : model.parameters()) {
        any = any || parameter.requires_grad();
    }
    return any;
}

bool trains(const jit::Module& model) {
    return model.hasattr("training") && model.is_training();
}

// What code of a method, which has a run(Stack&), answers.
template <class Code>
c10::IValue result_of(Code& code, const jit::Module& self,
                      const std::vector<c10::IValue>& arguments) {
    jit::Stack stack{self._ivalue()};
    stack.insert(stack.end(), arguments.begin(), arguments.end());
    code.run(stack);
    return stack.back();
}

}  // namespace

GraphModel::GraphModel(jit::Module model, bool freeze, bool fuse,
                       std::optional<c10::DeviceType> gather)
    : module_(std::move(model)) {
    if (!module_->find_method("forward")) {
        throw Error(ErrorCode::malformed, {.what = "the model has no forward()",
                                           .where = module_->_ivalue()->name(),
                                           .why = "captured are runs of that method",
                                           .hint = {}});
    }
    obstacle_ = device_obstacle(*module_).value_or("");
    const bool frozen = freeze && !is_training() && freeze_it();
    auto& function = jit::toGraphFunction(module_->get_method("forward").function());
    if (obstacle_.empty()) {
        obstacle_ = graph_obstacle(*function.graph()).value_or("");
    }
    if (frozen && !fuse && obstacle_.empty()) {
        if (gather) {
            left_bytes_ = gather_weights(function.graph(), *module_->_ivalue(), *gather);
        }
        // Runs that are never captured keep LibTorch's settings, which are faster for them.
        function._set_initial_executor_execution_mode(unspecialized);
        uncaptured_.emplace(function.graph()->copy(), function.name());
    }
    wants_gradients_ = any_wants_gradients(*module_);
}

GraphModel::GraphModel(const c10::intrusive_ptr<c10::ivalue::Object>& model,
                       std::shared_ptr<jit::Graph> forward)
    : served_(model.get()) {
    obstacle_ = device_obstacle(module()).value_or("");
    if (obstacle_.empty()) {
        obstacle_ = graph_obstacle(*forward).value_or("");
    }
    wants_gradients_ = any_wants_gradients(module());
    body_ =
        std::make_unique<jit::GraphFunction>("forward", std::move(forward), nullptr, unspecialized);
}

jit::Module GraphModel::module() const {
    return module_ ? *module_
                   : jit::Module(c10::intrusive_ptr<c10::ivalue::Object>::reclaim_copy(served_));
}

bool GraphModel::freeze_it() {
    try {
        module_ = jit::freeze(*module_);
        return true;
    } catch (const std::exception& error) {
        not_frozen_ = run_error(error.what());
        return false;
    }
}

bool GraphModel::is_training() const {
    return trains(module());
}

std::vector<c10::IValue> GraphModel::arguments(std::vector<c10::IValue> inputs,
                                               const jit::Kwargs& named) const {
    const jit::Method forward = module_->get_method("forward");
    inputs.insert(inputs.begin(), module_->_ivalue());
    forward.function().getSchema().checkAndNormalizeInputs(inputs, named);
    inputs.erase(inputs.begin());
    return inputs;
}

c10::IValue GraphModel::run(const std::vector<c10::IValue>& arguments) const {
    return body_ ? result_of(*body_, module(), arguments)
                 : module_->get_method("forward")(arguments);
}

c10::IValue GraphModel::run(const CaptureCode& code, std::vector<c10::IValue> arguments,
                            const std::vector<c10::IValue>& early) const {
    arguments.insert(arguments.end(), early.begin(), early.end());
    return result_of(*code.forward, module(), arguments);
}

std::vector<c10::IValue> GraphModel::run_early(const CaptureCode& code,
                                               const std::vector<c10::IValue>& arguments) const {
    return code.early ? result_of(*code.early, module(), arguments).toTupleRef().elements().vec()
                      : std::vector<c10::IValue>();
}

std::shared_ptr<const CaptureCode> GraphModel::capture_code(c10::DeviceType type,
                                                            bool dense_results) const {
    if (!body_ && !uncaptured_) {
        return nullptr;
    }
    const jit::Module self = module();
    auto& function = body_ ? *body_ : jit::toGraphFunction(self.get_method("forward").function());
    const auto graph = function.graph()->copy();
    const JoinedLinears joined = join_linears(graph, *self._ivalue(), type, dense_results);
    auto early = take_early_values(graph, *self._ivalue());
    if (joined.layers == 0 && !early) {
        return nullptr;
    }
    const auto of = [](const char* name, std::shared_ptr<jit::Graph> code) {
        return std::make_unique<jit::GraphFunction>(name, std::move(code), nullptr, unspecialized);
    };
    return std::make_shared<const CaptureCode>(
        CaptureCode{of("forward", graph), early ? of("early", std::move(early)) : nullptr, joined});
}

c10::IValue GraphModel::run_uncaptured(const std::vector<c10::IValue>& arguments) const {
    return uncaptured_ ? result_of(*uncaptured_, *module_, arguments) : run(arguments);
}

}  // namespace twinkle::runtime
