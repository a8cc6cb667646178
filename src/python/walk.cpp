#include "python/walk.h"

#include "python/fields.h"

namespace twinkle::python {

void for_each_child(const Node& node, const std::function<void(const Node&)>& f) {
    visit(node, [&](const auto& typed) { fields(typed, ChildVisitor<decltype(f)>{f}); });
}

void walk(const Node& node, const std::function<bool(const Node&)>& f) {
    if (f(node)) {
        for_each_child(node, [&](const Node& child) { walk(child, f); });
    }
}

}  // namespace twinkle::python
