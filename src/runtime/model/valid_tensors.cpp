#include "runtime/model/valid_tensors.h"

#include "runtime/graph/graph_walk.h"

#include <torch/csrc/jit/ir/ir.h>

#include <unordered_set>
#include <vector>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

bool is_valid(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage() || tensor.layout() != at::kStrided ||
        tensor.is_meta()) {
        return true;
    }
    const auto& storage = tensor.storage();
    __extension__ using Wide = __int128;
    Wide last = tensor.storage_offset();
    bool empty = false;
    for (std::int64_t i = 0; i < tensor.dim(); ++i) {
        if (tensor.size(i) < 0 || tensor.stride(i) < 0) {
            return false;
        }
        empty = empty || tensor.size(i) == 0;
        last += Wide(tensor.size(i) - 1) * tensor.stride(i);
    }
    return tensor.storage_offset() >= 0 &&
           (empty || (last + 1) * Wide(tensor.itemsize()) <= Wide(storage.nbytes()));
}

// Visits everything that values hold, each once.
class Search {
public:
    bool all_valid(c10::IValue value) {
        std::vector<c10::IValue> work{std::move(value)};
        while (!work.empty()) {
            const c10::IValue one = std::move(work.back());
            work.pop_back();
            if (one.isTensor()) {
                if (!is_valid(one.toTensor())) {
                    return false;
                }
            } else if (one.isPtrType() && seen_.insert(one.internalToPointer()).second) {
                add_parts(one, work);
            }
        }
        return true;
    }

    bool all_valid(const jit::Block* block) {
        for (const jit::Node* node : block->nodes()) {
            for (const c10::Symbol name : node->attributeNames()) {
                if (node->kindOf(name) == jit::AttributeKind::t && !is_valid(node->t(name))) {
                    return false;
                }
                if (node->kindOf(name) == jit::AttributeKind::ival &&
                    !all_valid(node->ival(name))) {
                    return false;
                }
                if (node->kindOf(name) == jit::AttributeKind::g &&
                    !all_valid(node->g(name)->block())) {
                    return false;
                }
            }
            for (const jit::Block* inner : node->blocks()) {
                if (!all_valid(inner)) {
                    return false;
                }
            }
        }
        return true;
    }

private:
    static void add_parts(const c10::IValue& value, std::vector<c10::IValue>& work) {
        if (value.isObject()) {
            const auto& slots = value.toObjectRef().slots();
            work.insert(work.end(), slots.begin(), slots.end());
        } else if (value.isTuple()) {
            const auto& elements = value.toTupleRef().elements();
            work.insert(work.end(), elements.begin(), elements.end());
        } else if (value.isList()) {
            const auto elements = value.toListRef();
            work.insert(work.end(), elements.begin(), elements.end());
        } else if (value.isGenericDict()) {
            for (const auto& entry : value.toGenericDict()) {
                work.push_back(entry.key());
                work.push_back(entry.value());
            }
        }
    }

    std::unordered_set<const void*> seen_;
};

}  // namespace

std::optional<std::string> invalid_tensor(const jit::Module& model) {
    Search search;
    if (!search.all_valid(c10::IValue(model._ivalue()))) {
        return "a tensor of it is larger than its data";
    }
    for (const auto& graph : graphs_of(model)) {
        if (!search.all_valid(graph->block())) {
            return "a constant of it is larger than its data";
        }
    }
    return std::nullopt;
}

}  // namespace twinkle::runtime
