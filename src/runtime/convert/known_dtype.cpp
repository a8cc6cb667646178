#include "runtime/convert/known_dtype.h"

namespace twinkle::runtime {

namespace {

int category(at::ScalarType dtype) {
    return dtype == at::kBool ? 0 : at::isIntegralType(dtype, false) ? 1 : 2;
}

}  // namespace

Known known_tensor(std::optional<at::ScalarType> dtype, const torch::jit::Value* made,
                   bool single) {
    Known known;
    known.kind = Known::Kind::tensor;
    known.dtype = dtype;
    known.single = single;
    known.made = made;
    return known;
}

Known joined(const Known& a, const Known& b) {
    if (a.kind != b.kind || a.elements.size() != b.elements.size()) {
        return {};
    }
    Known result = a;
    if (a.dtype != b.dtype) {
        result.dtype.reset();
    }
    result.single = a.single && b.single;
    result.assumed = a.assumed || b.assumed;
    result.made = a.made == b.made ? a.made : nullptr;
    result.cast = nullptr;
    for (std::size_t i = 0; i < a.elements.size(); ++i) {
        result.elements[i] = joined(a.elements[i], b.elements[i]);
    }
    return result;
}

void collect_tensors(const Known& known, std::vector<const Known*>& tensors) {
    if (known.kind == Known::Kind::tensor) {
        tensors.push_back(&known);
    }
    for (const Known& element : known.elements) {
        collect_tensors(element, tensors);
    }
}

bool is_whole(at::ScalarType dtype) {
    return category(dtype) < 2;
}

std::optional<at::ScalarType> promoted(const std::vector<const Known*>& tensors, bool floats) {
    std::optional<at::ScalarType> result;
    std::optional<at::ScalarType> single;
    for (const Known* one : tensors) {
        if (!one->dtype) {
            return std::nullopt;
        }
        auto& into = one->single ? single : result;
        into = into ? at::promote_types(*into, *one->dtype) : *one->dtype;
    }
    if (!result) {
        result = single;
    } else if (single && category(*single) > category(*result)) {
        result = *single;
    }
    const bool whole = result && is_whole(*result);
    return whole && floats ? std::optional(at::kFloat) : result;
}

}  // namespace twinkle::runtime
