#include "runtime/patterns/flat_constants.h"

namespace twinkle::runtime {

namespace {

std::optional<double> number(const c10::IValue& value) {
    return value.isDouble() ? std::optional(value.toDouble())
           : value.isInt()  ? std::optional(static_cast<double>(value.toInt()))
                            : std::nullopt;
}

// The elements of a list, those that are constants as such and the others null. None: it is no
// list.
class Elements {
public:
    Elements(const FlatGraph& graph, ValueId id) : graph_(graph) {
        const c10::IValue* held = graph.constant_of(id);
        if (held != nullptr && held->isList()) {
            constants_ = held->toListRef();
            is_list_ = true;
        } else if (held == nullptr && graph.value(id).parts != nothing) {
            parts_ = &graph.parts[static_cast<std::size_t>(graph.value(id).parts)];
            is_list_ = true;
        }
    }

    bool is_list() const { return is_list_; }
    std::size_t size() const { return parts_ != nullptr ? parts_->size() : constants_.size(); }
    const c10::IValue* operator[](std::size_t i) const {
        return parts_ != nullptr ? graph_.constant_of((*parts_)[i].value) : &constants_[i];
    }

private:
    const FlatGraph& graph_;
    c10::ArrayRef<c10::IValue> constants_;
    const c10::SmallVector<FlatInput, 4>* parts_ = nullptr;
    bool is_list_ = false;
};

}  // namespace

bool equal_constants(const c10::IValue& one, const c10::IValue& other) {
    if (const auto a = number(one), b = number(other); a && b) {
        return *a == *b;
    }
    if (one.isTensor() || other.isTensor()) {
        return false;
    }
    return one.tagKind() == other.tagKind() && (one.isNone() || one == other);
}

bool is_constant_list(const FlatGraph& graph, ValueId id) {
    const Elements all(graph, id);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i] == nullptr) {
            return false;
        }
    }
    return all.is_list();
}

bool equal_lists(const FlatGraph& graph, ValueId one, const FlatGraph& other_graph, ValueId other) {
    const Elements a(graph, one);
    const Elements b(other_graph, other);
    if (!a.is_list() || !b.is_list() || a.size() != b.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] == nullptr || b[i] == nullptr || !equal_constants(*a[i], *b[i])) {
            return false;
        }
    }
    return true;
}

}  // namespace twinkle::runtime
