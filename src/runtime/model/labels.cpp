#include "runtime/model/labels.h"

namespace twinkle::runtime {

namespace {

constexpr const char* attribute = "twinkle_labels";

}  // namespace

void set_labels(torch::jit::Module& root, const std::string& text) {
    if (!root.hasattr(attribute)) {
        root.register_attribute(attribute, c10::StringType::get(), text);
    } else if (labels_of(root)) {  // of an earlier kernelize
        root.setattr(attribute, text);
    }
}

bool has_labels(const c10::ClassType& type) {
    return type.hasAttribute(attribute);
}

std::optional<std::string> labels_of(const torch::jit::Module& root) {
    if (!root.hasattr(attribute)) {
        return std::nullopt;
    }
    const c10::IValue value = root.attr(attribute);
    return value.isString() ? std::optional(value.toStringRef()) : std::nullopt;
}

std::vector<std::string> label_attributes(const c10::ClassType& type) {
    return has_labels(type) ? std::vector<std::string>{attribute} : std::vector<std::string>();
}

}  // namespace twinkle::runtime
