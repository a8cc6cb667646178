#include "runtime/autograd/autograd_apply.h"

#include "runtime/autograd/held_tensors.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/script.h>

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Object = c10::intrusive_ptr<c10::ivalue::Object>;

constexpr const char* key_context = "ctx";
constexpr const char* key_positions = "tensor_arguments";
constexpr const char* key_arguments = "arguments";

// A saved model can make a ctx call itself; TorchScript alone has no recursion.
struct Depth {
    Depth() {
        TORCH_CHECK(depth < most, "twinkle: autograd.Functions call each other more than ", most,
                    " deep");
        ++depth;
    }
    ~Depth() { --depth; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

    static constexpr int most = 32;
    static thread_local int depth;
};
thread_local int Depth::depth = 0;

// The types of the arguments are checked: a saved model can pass anything as Any.
c10::IValue call(const Object& ctx, const std::string& method, std::vector<c10::IValue> arguments) {
    const Depth depth;
    arguments.insert(arguments.begin(), ctx);
    return ctx->type()->getMethod(method)(std::move(arguments));
}

void set(const Object& ctx, const std::string& attribute, c10::IValue value) {
    if (const auto slot = ctx->type()->findAttributeSlot(attribute)) {
        ctx->setSlot(*slot, std::move(value));
    }
}

c10::IValue get(const Object& ctx, const std::string& attribute) {
    const auto slot = ctx->type()->findAttributeSlot(attribute);
    return slot ? ctx->getSlot(*slot) : c10::IValue();
}

// None is an undefined tensor to autograd.
at::Tensor as_tensor(const c10::IValue& value) {
    return value.isNone() ? at::Tensor() : value.toTensor();
}

variable_list as_tensors(const c10::IValue& value) {
    variable_list tensors;
    if (value.isTuple()) {
        for (const c10::IValue& element : value.toTupleRef().elements()) {
            tensors.push_back(as_tensor(element));
        }
    } else {
        tensors.push_back(as_tensor(value));
    }
    return tensors;
}

// The tensors that forward has told about: those of a tuple, or none.
variable_list told(const Object& ctx, const char* attribute) {
    const c10::IValue value = get(ctx, attribute);
    variable_list tensors = value.isTuple() ? as_tensors(value) : variable_list();
    std::erase_if(tensors, [](const at::Tensor& tensor) { return !tensor.defined(); });
    return tensors;
}

// One call of a Function: its own ctx, and where the tensors are among the arguments.
struct Call {
    Call(const c10::IValue& context, const c10::IValue& tuple)
        : ctx(context.toObject()->copy()), arguments(tuple.toTupleRef().elements().vec()) {
        std::vector<c10::IValue> needed;
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            const c10::IValue& argument = arguments[i];
            const bool tensor = argument.isTensor() && argument.toTensor().defined();
            if (tensor) {
                positions.push_back(static_cast<std::int64_t>(i));
                tensors.push_back(argument.toTensor());
            }
            needed.emplace_back(tensor && argument.toTensor().requires_grad());
        }
        set(ctx, context_attribute::needs_input_grad,
            c10::ivalue::Tuple::create(std::move(needed)));
    }

    bool needs_node() const {
        return at::GradMode::is_enabled() &&
               std::any_of(tensors.begin(), tensors.end(),
                           [](const at::Tensor& tensor) { return tensor.requires_grad(); });
    }

    variable_list run() const {
        const c10::IValue output = call(ctx, "forward", arguments);
        if (ctx->type()->findMethod("setup_context") != nullptr) {
            call(ctx, "setup_context", {c10::ivalue::Tuple::create(arguments), output});
        }
        return as_tensors(output);
    }

    Object ctx;
    std::vector<c10::IValue> arguments;
    std::vector<std::int64_t> positions;
    variable_list tensors;
};

std::string name_of(const Object& ctx) {
    return ctx->type()->name()->name();
}

struct Node : torch::autograd::Function<Node> {
    // A list of tensors is only seen as tensors when it is passed as a TensorList.
    static variable_list forward(AutogradContext* node, at::TensorList, const Call* call) {
        variable_list outputs = call->run();
        const Object& ctx = call->ctx;
        node->mark_non_differentiable(told(ctx, context_attribute::non_differentiable));
        node->mark_dirty(told(ctx, context_attribute::dirty));
        const c10::IValue materialize = get(ctx, context_attribute::materialize_grads);
        node->set_materialize_grads(!materialize.isBool() || materialize.toBool());
        node->save_for_backward(take_tensors(*ctx));
        node->saved_data[key_context] = ctx;
        node->saved_data[key_positions] = call->positions;
        node->saved_data[key_arguments] = static_cast<std::int64_t>(call->arguments.size());
        return outputs;
    }

    static variable_list backward(AutogradContext* node, const variable_list& gradients) {
        const Object kept = node->saved_data.at(key_context).toObject();
        TORCH_CHECK_NOT_IMPLEMENTED(
            !at::GradMode::is_enabled(), "twinkle: the backward of ", name_of(kept),
            " is a kernel's own and cannot be differentiated again: call backward() or grad() "
            "without create_graph, or keep the original of this layer");
        const auto positions = node->saved_data.at(key_positions).toIntVector();
        const auto arguments = static_cast<std::size_t>(node->saved_data.at(key_arguments).toInt());
        const Object ctx = restored(*node, kept, positions, arguments);
        std::vector<c10::IValue> given;
        for (const at::Tensor& gradient : gradients) {
            // Many kernels read it as if it were contiguous; that of sum() is expanded.
            given.push_back(gradient.defined() ? c10::IValue(gradient.contiguous())
                                               : c10::IValue());
        }
        variable_list results = as_tensors(call(ctx, "backward", std::move(given)));
        results.resize(std::max(results.size(), arguments));
        variable_list wanted;
        for (const std::int64_t position : positions) {
            wanted.push_back(std::move(results[static_cast<std::size_t>(position)]));
        }
        const bool others = std::any_of(results.begin(), results.end(),
                                        [](const at::Tensor& one) { return one.defined(); });
        TORCH_CHECK(!others, "twinkle: the backward of ", name_of(ctx),
                    " gives a gradient for an argument that is no tensor");
        wanted.emplace_back();  // for the call
        return wanted;
    }

private:
    // Backward works on a copy: it may run again, and in several threads.
    static Object restored(AutogradContext& node, const Object& kept,
                           const std::vector<std::int64_t>& positions, std::size_t arguments) {
        Object ctx = kept->copy();
        variable_list saved = node.get_saved_variables();
        for (at::Tensor& tensor : saved) {
            if (tensor.defined() && tensor.requires_grad()) {
                tensor = tensor.detach();  // else TorchScript prepares a gradient of the gradient
            }
        }
        put_tensors(*ctx, saved);
        std::vector<c10::IValue> needed(arguments, false);
        for (std::size_t i = 0; i < positions.size(); ++i) {
            needed[static_cast<std::size_t>(positions[i])] = node.needs_input_grad(i);
        }
        set(ctx, context_attribute::needs_input_grad,
            c10::ivalue::Tuple::create(std::move(needed)));
        return ctx;
    }
};

variable_list apply(jit::Stack& stack) {
    const c10::IValue arguments = jit::pop(stack);
    const c10::IValue context = jit::pop(stack);
    TORCH_CHECK(context.isObject() && arguments.isTuple(),
                "twinkle: autograd_apply takes a ctx object and a tuple");
    const Call call(context, arguments);
    return call.needs_node() ? Node::apply(at::TensorList(call.tensors), &call) : call.run();
}

void apply_one(jit::Stack& stack) {
    variable_list outputs = apply(stack);
    TORCH_CHECK(outputs.size() == 1, "twinkle: a Function's forward gave no single tensor");
    jit::push(stack, std::move(outputs[0]));
}

void apply_many(jit::Stack& stack) {
    jit::push(stack, c10::List<at::Tensor>(apply(stack)));
}

// CONSERVATIVE: a forward may write to what it is given, and its outputs may alias it.
const jit::RegisterOperators registration(
    {jit::Operator("twinkle::autograd_apply(Any ctx, Any args) -> Tensor", apply_one,
                   c10::AliasAnalysisKind::CONSERVATIVE),
     jit::Operator("twinkle::autograd_apply_many(Any ctx, Any args) -> Tensor[]", apply_many,
                   c10::AliasAnalysisKind::CONSERVATIVE)});

}  // namespace

}  // namespace twinkle::runtime
