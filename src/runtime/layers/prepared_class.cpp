#include "runtime/layers/prepared_class.h"

#include "runtime/graph/kernel_method.h"
#include "runtime/source/layer_compiler.h"

#include <utility>

namespace twinkle::runtime {

PreparedClass::~PreparedClass() {
    if (kept_ || method_.empty()) {
        return;
    }
    remove_method(type_, method_);
    for (const std::string& name : added_) {
        type_->unsafeRemoveAttribute(name);
    }
}

tl::expected<void, std::string> PreparedClass::declare(const HostedLayer& layer) {
    Compilation& compilation = *layer.compilation;
    const auto names = prepared_names(compilation.package(), layer.layer);
    if (!names) {
        return tl::make_unexpected(names.error());
    }
    if (names->empty()) {
        return {};
    }
    const std::string name = name_of_prepare_method(layer.layer);
    const auto method = compile_prepare(compilation, layer.layer, type_, name, layer.host);
    if (!method) {
        return tl::make_unexpected(method.error());
    }
    method_ = name;
    const auto wanted = c10::DictType::create(c10::StringType::get(), c10::TensorType::get());
    const auto& returns = (*method)->getSchema().returns();
    if (returns.size() != 1 || *returns.front().type() != *wanted) {
        return tl::make_unexpected(layer.layer + ".prepare returns something else than tensors");
    }
    for (const std::string& one : *names) {
        const auto known = type_->findAttribute(one);
        if (known != nullptr && known->kind() != c10::TypeKind::TensorType) {
            return tl::make_unexpected(layer.layer + ".prepare makes " + one +
                                       ", which is no tensor of the model");
        }
        if (known == nullptr) {
            type_->addAttribute(one, c10::TensorType::get(), false, /*is_buffer=*/true);
            added_.push_back(one);
        }
    }
    return {};
}

}  // namespace twinkle::runtime
