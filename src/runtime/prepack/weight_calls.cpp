#include "runtime/prepack/weight_calls.h"

#include "runtime/graph/class_name.h"
#include "runtime/prepack/known_values.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// Limit on visited nodes and their inputs; the largest models have about ten thousand.
constexpr std::size_t most_steps = 500'000;
// Limit on nested calls and blocks, because the stack is finite.
constexpr int most_depth = 200;

class CodeReader {
public:
    CodeReader(const jit::Module& model, const PrepackOperators& operators)
        : operators_(operators) {
        for (const jit::Method& method : model.get_methods()) {
            call(&method.function(), {{.constant = model._ivalue()}});
        }
    }

    std::vector<std::pair<Slot, Prepacking>> slots() const {
        std::vector<std::pair<Slot, Prepacking>> all;
        if (all_followed_ && !replaces_objects()) {
            std::copy_if(found_.begin(), found_.end(), std::back_inserter(all),
                         [this](const auto& one) { return may_prepack(one.first); });
        }
        return all;
    }

private:
    // By the class, where the object is not known.
    using Attribute = std::pair<const c10::ClassType*, std::string>;

    bool may_prepack(const Slot& slot) const {
        const c10::ClassTypePtr type = slot.first->type();
        return read_.count(slot) == 0 &&
               class_attributes_.count({type.get(), type->getAttributeName(slot.second)}) == 0;
    }

    // Whether an object that was followed may be another one by then.
    bool replaces_objects() const {
        return std::any_of(objects_.begin(), objects_.end(),
                           [this](const auto& one) { return written_objects_.count(one) != 0; });
    }

    bool take_steps(std::size_t count) {
        steps_ += count;
        all_followed_ = all_followed_ && steps_ < most_steps && depth_ < most_depth;
        return all_followed_;
    }

    void call(jit::Function* function, std::vector<KnownValue> arguments) {
        if (function == nullptr) {
            all_followed_ = false;
            return;
        }
        auto* const compiled = jit::tryToGraphFunction(*function);
        if (compiled == nullptr) {
            call_foreign(*function, arguments);
            return;
        }
        const auto graph = compiled->graph();
        KnownValues values;
        for (std::size_t i = 0; i < arguments.size() && i < graph->inputs().size(); ++i) {
            const jit::Value* const input = graph->inputs()[i];
            arguments[i].is_taken = arguments[i].is_taken || takes_weight(*function, input);
            values.set(input, std::move(arguments[i]));
        }
        read(graph->block(), values);
    }

    // Code in C++ may do anything with what it is given, but for the object whose method it is.
    void call_foreign(const jit::Function& function, const std::vector<KnownValue>& arguments) {
        for (const KnownValue& argument : arguments) {
            const auto* const object = argument.object();
            const bool is_own =
                object != nullptr && object->type()->findMethod(function.name()) == &function;
            all_followed_ = all_followed_ && (object == nullptr || is_own);
            give_away(argument);
        }
    }

    // A function of a kernel that calls an operator with its weight takes prepacked ones for it.
    bool takes_weight(const jit::Function& function, const jit::Value* input) {
        return take_steps(input->uses().size()) &&
               function.qualname().qualifiedName().starts_with(kernel_code) &&
               std::any_of(input->uses().begin(), input->uses().end(), [&](const jit::Use& use) {
                   const auto found = operators_.find(use.user->kind());
                   return found != operators_.end() && found->second.is_weight(use.offset);
               });
    }

    void read(const jit::Block* block, KnownValues& values) {
        ++depth_;
        for (const jit::Node* const node : block->nodes()) {
            if (!take_steps(1 + node->inputs().size())) {
                break;
            }
            read(node, values);
        }
        if (take_steps(block->outputs().size())) {
            give_away(block->return_node(), values);
        }
        --depth_;
    }

    void read(const jit::Node* node, KnownValues& values) {
        if (node->hasAttribute(c10::attr::Subgraph)) {  // a fork
            all_followed_ = false;
        } else if (node->kind() == c10::prim::GetAttr) {
            read_attribute(node, values);
        } else if (node->kind() == c10::prim::SetAttr) {
            write_attribute(node, values);
        } else if (node->kind() == c10::prim::CallFunction ||
                   node->kind() == c10::prim::CallMethod) {
            read_call(node, values);
        } else if (node->kind() == c10::prim::Enter || node->kind() == c10::prim::Exit) {
            // LibTorch calls the method itself.
            const char* const name = node->kind() == c10::prim::Enter ? "__enter__" : "__exit__";
            call(method_of(node->input(0), name), {values.of(node->input(0))});
        } else if (node->kind() == c10::prim::If) {
            read_branches(node, values);
        } else {
            read_operator(node, values);
            for (const jit::Block* const block : node->blocks()) {
                read(block, values);
            }
        }
    }

    void read_attribute(const jit::Node* node, KnownValues& values) {
        const std::string& name = node->s(c10::attr::name);
        c10::ivalue::Object* const owner = values.of(node->input()).object();
        if (owner == nullptr) {
            add_class_attribute(node->input()->type(), name);
            return;
        }
        const std::size_t slot = owner->type()->getAttributeSlot(name);
        const c10::IValue& value = owner->getSlot(slot);
        if (value.isObject() && node->output()->type()->cast<c10::ClassType>() != nullptr) {
            objects_.insert({owner->type().get(), name});
            values.set(node->output(), {.constant = value});
        } else if (value.isTensor() &&
                   node->output()->type()->kind() == c10::TypeKind::TensorType) {
            values.set(node->output(), {.owner = owner, .slot = slot});
        }
    }

    void write_attribute(const jit::Node* node, const KnownValues& values) {
        const std::string& name = node->s(c10::attr::name);
        add_class_attribute(node->input(0)->type(), name);
        if (const auto owner = node->input(0)->type()->cast<c10::ClassType>()) {
            written_objects_.insert({owner.get(), name});
        }
        give_away(node, values);
    }

    // One that is read in an object that is not known, or written: it counts for the whole class.
    void add_class_attribute(const c10::TypePtr& type, const std::string& name) {
        const auto owner = type->cast<c10::ClassType>();
        if (owner == nullptr) {
            all_followed_ = false;
        } else {
            class_attributes_.insert({owner.get(), name});
        }
    }

    void read_call(const jit::Node* node, const KnownValues& values) {
        const bool is_method = node->kind() == c10::prim::CallMethod;
        std::vector<KnownValue> arguments;
        for (const jit::Value* const input : node->inputs().slice(is_method ? 0 : 1)) {
            arguments.push_back(values.of(input));
        }
        call(is_method ? method_of(node->input(0), node->s(c10::attr::name)) : function_of(node),
             std::move(arguments));
    }

    static jit::Function* function_of(const jit::Node* node) {
        const auto type = node->input(0)->type()->cast<c10::FunctionType>();
        return type == nullptr ? nullptr : type->function();
    }

    static jit::Function* method_of(const jit::Value* self, const std::string& name) {
        const auto type = self->type()->cast<c10::ClassType>();
        jit::Function* const method = type == nullptr ? nullptr : type->findMethod(name);
        return method == nullptr && type != nullptr ? type->findHook(name) : method;
    }

    // Reads only the branch that runs, where that is known.
    void read_branches(const jit::Node* node, KnownValues& values) {
        const auto condition = values.of(node->input()).constant;
        const bool is_known = condition && condition->isBool();
        for (std::size_t i = 0; i < node->blocks().size(); ++i) {
            if (!is_known || condition->toBool() == (i == 0)) {
                read(node->blocks()[i], values);
            }
        }
    }

    void read_operator(const jit::Node* node, KnownValues& values) {
        const auto found = operators_.find(node->kind());
        for (std::size_t i = 0; i < node->inputs().size(); ++i) {
            const KnownValue known = values.of(node->input(i));
            if (known.is_taken && found != operators_.end() && found->second.is_weight(i)) {
                add({known.owner, known.slot}, prepacking_of(node, found->second, values));
            } else {
                give_away(known);
            }
            all_followed_ = all_followed_ && !is_compared(node, i);
        }
        values.compute(node);
    }

    // To sort objects, LibTorch calls their __lt__.
    static bool is_compared(const jit::Node* node, std::size_t input) {
        const auto list = node->input(input)->type()->cast<c10::ListType>();
        return list != nullptr && list->getElementType()->cast<c10::ClassType>() != nullptr &&
               (node->kind() == c10::aten::sort || node->kind() == c10::aten::sorted);
    }

    // What is returned, stored or computed with goes on to something that is not followed.
    void give_away(const jit::Node* node, const KnownValues& values) {
        for (const jit::Value* const input : node->inputs()) {
            give_away(values.of(input));
        }
    }

    void give_away(const KnownValue& known) {
        if (known.is_weight() && !known.is_taken) {
            read_.insert({known.owner, known.slot});
        }
    }

    static Prepacking prepacking_of(const jit::Node* node, const PrepackOperator& how,
                                    const KnownValues& values) {
        Prepacking wanted{&how};
        for (const std::size_t at : how.arguments) {
            const auto constant = values.of(node->input(at)).constant;
            if (!constant) {
                return {};
            }
            wanted.arguments.push_back(*constant);
        }
        return wanted;
    }

    // Calls that want it in different ways get it as it is.
    void add(const Slot& slot, const Prepacking& wanted) {
        const auto [entry, first] = places_.emplace(slot, found_.size());
        if (first) {
            found_.emplace_back(slot, wanted);
        }
        if (wanted.how == nullptr || !(found_[entry->second].second == wanted)) {
            read_.insert(slot);
        }
    }

    const PrepackOperators& operators_;
    std::vector<std::pair<Slot, Prepacking>> found_;
    std::map<Slot, std::size_t> places_;
    std::set<Slot> read_;  // by something else
    std::set<Attribute> class_attributes_, objects_, written_objects_;
    std::size_t steps_ = 0;
    int depth_ = 0;
    bool all_followed_ = true;
};

}  // namespace

std::vector<std::pair<Slot, Prepacking>> weight_calls(const jit::Module& model,
                                                      const PrepackOperators& operators) {
    return CodeReader(model, operators).slots();
}

}  // namespace twinkle::runtime
