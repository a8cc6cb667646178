#include "runtime/verify/reduction_length.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace twinkle::runtime {

namespace {

// Where an operator's arguments or results show how many terms it sums.
enum class Shows {
    reduced,      // elements of the input over those of the result
    last,         // the last dimension of the first argument
    last_second,  // … of the second argument
    dimension,    // the dimension that the second argument names
    normalized,   // the dimensions that the second argument lists
    filter,       // the elements of the second argument that make up one result
    attention,    // channels of the first argument, or rows of the second
};

const std::unordered_map<std::string_view, Shows>& operators() {
    static const auto& known = *new std::unordered_map<std::string_view, Shows>{
        {"aten::sum", Shows::reduced},
        {"aten::mean", Shows::reduced},
        {"aten::var", Shows::reduced},
        {"aten::var_mean", Shows::reduced},
        {"aten::std", Shows::reduced},
        {"aten::norm", Shows::reduced},
        {"aten::linalg_vector_norm", Shows::reduced},
        {"aten::logsumexp", Shows::reduced},
        {"aten::native_batch_norm", Shows::reduced},
        {"aten::native_group_norm", Shows::reduced},
        {"aten::native_batch_norm_backward", Shows::reduced},
        {"aten::native_group_norm_backward", Shows::reduced},
        {"aten::native_layer_norm_backward", Shows::reduced},
        {"aten::mm", Shows::last},
        {"aten::bmm", Shows::last},
        {"aten::mv", Shows::last},
        {"aten::dot", Shows::last},
        {"aten::linear", Shows::last},
        {"aten::addmm", Shows::last_second},
        {"aten::baddbmm", Shows::last_second},
        {"aten::addmv", Shows::last_second},
        {"aten::cumsum", Shows::dimension},
        {"aten::_softmax", Shows::dimension},
        {"aten::_log_softmax", Shows::dimension},
        {"aten::native_layer_norm", Shows::normalized},
        {"aten::rms_norm", Shows::normalized},
        {"aten::convolution", Shows::filter},
        {"aten::_convolution", Shows::filter},
        {"aten::scaled_dot_product_attention", Shows::attention},
    };
    return known;
}

std::atomic<std::int64_t> longest{1};

void raise_to(std::int64_t terms) {
    std::int64_t known = longest;
    while (known < terms && !longest.compare_exchange_weak(known, terms)) {
    }
}

const at::Tensor* tensor_at(at::ArrayRef<const c10::IValue> inputs, std::size_t index) {
    return index < inputs.size() && inputs[index].isTensor() && inputs[index].toTensor().defined()
               ? &inputs[index].toTensor()
               : nullptr;
}

std::int64_t last_of(const at::Tensor* tensor) {
    return tensor != nullptr && tensor->dim() > 0 ? tensor->size(-1) : 1;
}

std::int64_t terms_of(Shows shows, at::ArrayRef<const c10::IValue> inputs) {
    const at::Tensor* first = tensor_at(inputs, 0);
    const at::Tensor* second = tensor_at(inputs, 1);
    switch (shows) {
        case Shows::reduced: return first != nullptr ? first->numel() : 1;
        case Shows::last: return last_of(first);
        case Shows::last_second: return last_of(second);
        case Shows::dimension: {
            const bool known = first != nullptr && inputs.size() > 1 && inputs[1].isInt() &&
                               inputs[1].toInt() < first->dim() &&
                               inputs[1].toInt() >= -first->dim();
            return known && first->dim() > 0 ? first->size(inputs[1].toInt()) : 1;
        }
        case Shows::normalized: {
            std::int64_t terms = 1;
            if (inputs.size() > 1 && inputs[1].isIntList()) {
                for (const std::int64_t size : inputs[1].toIntVector()) {
                    terms *= size;
                }
            }
            return terms;
        }
        case Shows::filter:
            return second != nullptr && second->dim() > 0 && second->size(0) > 0
                       ? second->numel() / second->size(0)
                       : 1;
        case Shows::attention:
            return std::max(last_of(first), second != nullptr && second->dim() > 1
                                                ? second->size(-2)
                                                : std::int64_t{1});
    }
    return 1;
}

// The number of elements that an operator reduces, kept until its result is known.
struct Reduced : at::ObserverContext {
    std::int64_t elements = 0;
};

std::unique_ptr<at::ObserverContext> begins(const at::RecordFunction& call) {
    const auto known = operators().find(call.name());
    if (known == operators().end()) {
        return nullptr;
    }
    const std::int64_t terms = terms_of(known->second, call.inputs());
    if (known->second != Shows::reduced) {
        raise_to(terms);
        return nullptr;
    }
    auto reduced = std::make_unique<Reduced>();
    reduced->elements = terms;
    return reduced;
}

void ends(const at::RecordFunction& call, at::ObserverContext* context) {
    if (context == nullptr || call.outputs().empty() || !call.outputs().back().isTensor()) {
        return;
    }
    // The last of several results is a statistic or the gradient of a bias: one element for each
    // sum.
    const at::Tensor& result = call.outputs().back().toTensor();
    if (result.defined() && result.numel() > 0) {
        raise_to(static_cast<const Reduced*>(context)->elements / result.numel());
    }
}

}  // namespace

std::int64_t longest_reduction(const std::function<void()>& work) {
    static std::mutex one_at_a_time;
    const std::scoped_lock lock(one_at_a_time);
    longest = 1;
    struct Observed {
        // Thread-local callbacks also follow the work onto threads that it starts.
        at::CallbackHandle handle = at::addThreadLocalCallback(
            at::RecordFunctionCallback(begins, ends)
                .needsInputs(true)
                .needsOutputs(true)
                .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
        Observed() = default;
        Observed(const Observed&) = delete;
        Observed& operator=(const Observed&) = delete;
        ~Observed() { at::removeCallback(handle); }
    };
    const Observed observed;
    work();
    return longest;
}

}  // namespace twinkle::runtime
