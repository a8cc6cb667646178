#include "runtime/replay/model_state.h"

#include "runtime/graph/graph_walk.h"
#include "runtime/graph/sites.h"
#include "runtime/model/nested_values.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace twinkle::runtime {

namespace {

c10::weak_intrusive_ptr<c10::StorageImpl> storage_of(const at::Tensor& tensor) {
    using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
    const auto* impl = tensor.unsafeGetTensorImpl();
    return impl->has_storage() ? impl->unsafe_storage().getWeakStorageImpl()
                               : Weak(c10::intrusive_ptr<c10::StorageImpl>());
}

const void* data_of(const at::Tensor& tensor) {
    const auto* impl = tensor.unsafeGetTensorImpl();
    return impl->has_storage() ? static_cast<const char*>(impl->unsafe_storage().data()) +
                                     impl->storage_offset() * impl->itemsize()
                               : nullptr;
}

std::uint32_t version_of(const at::Tensor& tensor) {
    return tensor.is_inference() ? 0 : static_cast<std::uint32_t>(tensor._version());
}

// Compares values without tensors: numbers by value, all else by identity.
bool is_same_value(const c10::IValue& now, const c10::IValue& was) {
    if (now.isInt() && was.isInt()) {
        return now.toInt() == was.toInt();
    }
    if (now.isBool() && was.isBool()) {
        return now.toBool() == was.toBool();
    }
    if (now.isDouble() && was.isDouble()) {
        return now.toDouble() == was.toDouble();
    }
    return now.is(was);
}

}  // namespace

ModelState::Tensor::Tensor(const at::Tensor& tensor)
    : storage(storage_of(tensor)), data(data_of(tensor)), version(version_of(tensor)) {}

bool ModelState::Tensor::is_same(const at::Tensor& now) const {
    const auto* impl = now.unsafeGetTensorImpl();
    const c10::StorageImpl* own =
        impl->has_storage() ? impl->unsafe_storage().unsafeGetStorageImpl() : nullptr;
    return own == storage._unsafe_get_target() && data_of(now) == data &&
           version_of(now) == version;
}

ModelState::ModelState(const torch::jit::Module& model, const torch::jit::Graph& code)
    : root_(model._ivalue().get()), root_type_(model.type()) {
    if (!add_read(code)) {
        attributes_.clear();
        object_.clear();
        add_all(model);
    }
}

// False: the code does something else with a module than to read its attributes.
bool ModelState::add_read(const torch::jit::Graph& code) {
    std::unordered_map<const torch::jit::Value*, const c10::ivalue::Object*> modules;
    modules[code.inputs().at(0)] = root_;
    std::set<std::pair<const c10::ivalue::Object*, std::size_t>> seen;
    bool known = true;
    for_each_node(code.block(), [&](const torch::jit::Node* node) {
        for (const torch::jit::Value* input : node->inputs()) {
            known = known && (node->kind() == c10::prim::GetAttr || modules.count(input) == 0);
        }
        if (!known || node->kind() != c10::prim::GetAttr) {
            return;
        }
        const auto owner = modules.find(node->input());
        const std::string& name = node->s(c10::attr::name);
        const auto slot =
            owner == modules.end() ? std::nullopt : owner->second->type()->findAttributeSlot(name);
        if (!slot) {
            known = false;
            return;
        }
        const c10::IValue& value = owner->second->getSlot(*slot);
        if (value.isModule()) {
            modules[node->output()] = &value.toObjectRef();
        }
        if (seen.emplace(owner->second, *slot).second) {
            add(owner->second, *slot, name);
        }
    });
    return known;
}

void ModelState::add_all(const torch::jit::Module& model) {
    for (const Instance& instance : instances_of(model)) {
        const auto object = instance.module._ivalue();
        const auto names = object->type()->numAttributes();
        for (std::size_t slot = 0; slot < names; ++slot) {
            const std::string& name = object->type()->getAttributeName(slot);
            add(object.get(), slot, instance.path.empty() ? name : instance.path + "." + name);
        }
    }
}

void ModelState::add(const c10::ivalue::Object* owner, std::size_t slot, const std::string& name) {
    const c10::IValue& value = owner->getSlot(slot);
    if (value.isModule()) {
        attributes_.push_back(
            {owner, slot, &value.toObjectRef(), value.toObjectRef().type(), {}, {}});
        return;
    }
    if (!is_plain(value)) {
        object_ = name;
        return;
    }
    Attribute attribute{owner, slot, nullptr, nullptr, value, {}};
    for (const at::Tensor& tensor : tensors_of(value)) {
        attribute.tensors.emplace_back(tensor);
    }
    attributes_.push_back(std::move(attribute));
}

bool ModelState::is_current() const {
    return root_->type() == root_type_ &&
           std::all_of(attributes_.begin(), attributes_.end(), is_same);
}

bool ModelState::is_same(const Attribute& was) {
    const c10::IValue& now = was.owner->getSlot(was.slot);
    if (was.child != nullptr) {
        return now.isObject() && &now.toObjectRef() == was.child &&
               now.toObjectRef().type() == was.type;
    }
    if (now.isTensor() && was.value.isTensor()) {
        const at::Tensor& tensor = now.toTensor();
        return tensor.is_same(was.value.toTensor()) &&
               (was.tensors.empty() || was.tensors[0].is_same(tensor));
    }
    if (!is_same_value(now, was.value)) {
        return false;
    }
    if (was.tensors.empty()) {
        return true;
    }
    const std::vector<at::Tensor> tensors = tensors_of(now);
    return std::equal(was.tensors.begin(), was.tensors.end(), tensors.begin(), tensors.end(),
                      [](const Tensor& one, const at::Tensor& held) { return one.is_same(held); });
}

}  // namespace twinkle::runtime
