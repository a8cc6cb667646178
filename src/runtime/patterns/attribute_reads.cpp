#include "runtime/patterns/attribute_reads.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

void AttributeReads::set_object(ValueId id, const c10::intrusive_ptr<c10::ivalue::Object>& object) {
    auto& objects = to_.graph.objects;
    const auto [entry, first] =
        objects_.try_emplace(object.get(), static_cast<std::int32_t>(objects.size()));
    if (first) {
        objects.push_back(object);
        reads_.emplace_back(object->slots().size());
    }
    to_.value(id).object = entry->second;
    to_.value(id).kind = ValueKind::module;
}

void AttributeReads::read(jit::Node* node, std::int32_t frame) {
    const auto object = to_.value(to_.known(frame, node->input())).object;
    if (object == nothing) {
        to_.define(frame, node->output());
        return;
    }
    const auto holder = to_.graph.objects[static_cast<std::size_t>(object)];
    const std::string& name = node->s(c10::attr::name);
    const auto slot = holder->type()->findAttributeSlot(name);
    auto& reads = reads_[static_cast<std::size_t>(object)];
    if (!slot || *slot >= reads.size()) {
        to_.define(frame, node->output());
        return;
    }
    Read& same = reads[*slot];
    if (same.settings == settings_) {
        to_.bind(frame, node->output(), same.value);
        return;
    }
    const ValueId id = to_.define(frame, node->output());
    same = {settings_, id};
    if (!changing_.empty() && changing_.contains(name)) {
        return;
    }
    const c10::IValue& held = holder->getSlot(*slot);
    if (held.isTensor() && held.toTensor().defined()) {
        to_.value(id).dtype = held.toTensor().scalar_type();
    } else if (held.isObject()) {
        set_object(id, held.toObject());  // moves what `same` refers to
    } else if (never_trains_ && name == "training" && held.isBool()) {
        to_.set_constant(id, held);
    }
}

void AttributeReads::forget(const jit::Node* node) {
    ++settings_;
    if (node->kind() == c10::prim::SetAttr) {
        set_names_.insert(node->s(c10::attr::name));
    }
}

}  // namespace twinkle::runtime
