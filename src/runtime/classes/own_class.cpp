#include "runtime/classes/own_class.h"

#include "runtime/classes/class_groups.h"
#include "runtime/classes/retyping.h"

#include <map>
#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

class Separation {
public:
    explicit Separation(const ClassGroups& tree) : tree_(tree), types_(tree.groups.size()) {}

    std::optional<RetypingProblem> run() {
        choose_classes();
        for (std::size_t group = 0; group < types_.size(); ++group) {
            set_attribute_types(group);
        }
        if (auto problem = clone_and_try()) {
            undo();
            return problem;
        }
        retype_changed();
        replace_objects();
        return std::nullopt;
    }

private:
    bool is_clone(std::size_t group) const { return types_[group] != tree_.groups[group].type; }

    // One group of each class keeps it: one that is left alone, if there is such a one.
    void choose_classes() {
        std::map<const void*, std::size_t> keepers;
        for (std::size_t group = 0; group < types_.size(); ++group) {
            const auto [keeper, first] = keepers.emplace(tree_.groups[group].type.get(), group);
            if (!first && tree_.groups[keeper->second].treated && !tree_.groups[group].treated) {
                keeper->second = group;
            }
        }
        // The root's object is known to others, so its class stays.
        const std::size_t root = tree_.objects.back().group;
        keepers[tree_.groups[root].type.get()] = root;
        for (std::size_t group = 0; group < types_.size(); ++group) {
            const auto& from = tree_.groups[group].type;
            types_[group] = keepers[from.get()] == group ? from : empty_clone(from);
        }
    }

    static c10::ClassTypePtr empty_clone(const c10::ClassTypePtr& from) {
        const auto unit = from->compilation_unit();
        auto to = c10::ClassType::create(unit->mangle(*from->name()), unit, from->is_module());
        for (std::size_t i = 0; i < from->numAttributes(); ++i) {
            to->addAttribute(from->getAttributeName(i), from->getAttribute(i),
                             from->is_parameter(i), from->is_buffer(i));
        }
        for (std::size_t i = 0; i < from->numConstants(); ++i) {
            to->addConstant(from->getConstantName(i), from->getConstant(i));
        }
        unit->register_type(to);
        return to;
    }

    void set_attribute_types(std::size_t group) {
        const TreeObject& example = tree_.objects[tree_.groups[group].members.front()];
        for (const TreeObject::Child& child : example.children) {
            const auto& wanted = types_[tree_.objects[child.object].group];
            const auto now = types_[group]->getAttribute(child.slot);
            if (child.typed && now.get() != wanted.get()) {
                if (!is_clone(group)) {
                    changed_.push_back({types_[group], child.slot, now});
                }
                types_[group]->unsafeChangeAttributeType(
                    types_[group]->getAttributeName(child.slot), wanted);
            }
        }
    }

    void undo() {
        for (const ChangedAttribute& one : changed_) {
            one.type->unsafeChangeAttributeType(one.type->getAttributeName(one.slot), one.was);
        }
    }

    // Children first, so that the hooks of a clone are there before a graph calls them.
    std::optional<RetypingProblem> clone_and_try() {
        for (std::size_t group = 0; group < types_.size(); ++group) {
            auto problem = is_clone(group) ? copy_functions(tree_.groups[group].type, types_[group])
                                           : std::nullopt;
            if (problem) {
                return problem;
            }
        }
        for (jit::Function* function : functions_of_changed()) {
            const auto graph = jit::toGraphFunction(*function).graph()->copy();
            if (auto problem = retype_own(*graph)) {
                return problem;
            }
        }
        return std::nullopt;
    }

    std::optional<RetypingProblem> copy_functions(const c10::ClassTypePtr& from,
                                                  const c10::ClassTypePtr& to) {
        std::map<const jit::Function*, jit::Function*> hooks;
        std::optional<RetypingProblem> problem;
        const auto copy = [&](jit::Function* function) {
            auto graph = jit::toGraphFunction(*function).graph()->copy();
            if (!problem) {
                problem = retype(*graph, to, hooks_);
            }
            auto* made = from->compilation_unit()->create_function(
                c10::QualifiedName(*to->name(), function->name()), std::move(graph));
            std::vector<c10::Argument> arguments = function->getSchema().arguments();
            if (!arguments.empty()) {
                arguments.front() = arguments.front().cloneWithType(to);
            }
            made->setSchema(function->getSchema().cloneWithArguments(std::move(arguments)));
            return made;
        };
        const auto copy_hook = [&](jit::Function* hook) {
            auto& made = hooks[hook];  // one hook may be registered twice
            if (made == nullptr) {
                made = copy(hook);
                hooks_[{hook, to.get()}] = made;
            }
            return made;
        };
        for (jit::Function* hook : from->getForwardPreHooks()) {
            to->addForwardPreHook(copy_hook(hook));
        }
        for (jit::Function* hook : from->getForwardHooks()) {
            to->addForwardHook(copy_hook(hook));
        }
        for (jit::Function* method : from->methods()) {
            to->addMethod(copy(method));
        }
        for (const auto& property : from->properties()) {
            to->addProperty(
                property.name, to->findMethod(property.getter->name()),
                property.setter != nullptr ? to->findMethod(property.setter->name()) : nullptr);
        }
        return problem;
    }

    std::vector<jit::Function*> functions_of_changed() const {
        std::vector<jit::Function*> functions;
        std::unordered_set<const void*> seen;
        const auto add = [&](const std::vector<jit::Function*>& more) {
            for (jit::Function* function : more) {
                if (seen.insert(function).second) {
                    functions.push_back(function);
                }
            }
        };
        // A graph reaches into the children of its own children (a loop over a list of layers
        // does), so those of all classes that stay are looked at.
        for (std::size_t group = 0; group < types_.size(); ++group) {
            if (!is_clone(group)) {
                add(types_[group]->getForwardPreHooks());
                add(types_[group]->getForwardHooks());
                add(types_[group]->methods());
            }
        }
        return functions;
    }

    std::optional<RetypingProblem> retype_own(jit::Graph& graph) const {
        const auto self =
            graph.inputs().empty() ? nullptr : graph.inputs()[0]->type()->cast<c10::ClassType>();
        return self ? retype(graph, self, hooks_) : std::nullopt;
    }

    void retype_changed() {
        for (jit::Function* function : functions_of_changed()) {
            retype_own(*jit::toGraphFunction(*function).graph());
        }
    }

    // The same slots under the new class, hung into whoever held the old object.
    void replace_objects() {
        std::vector<c10::intrusive_ptr<c10::ivalue::Object>> objects;
        for (const TreeObject& one : tree_.objects) {
            auto object = one.module._ivalue();
            if (is_clone(one.group)) {
                const auto& type = types_[one.group];
                auto made = c10::ivalue::Object::create(
                    c10::StrongTypePtr(type->compilation_unit(), type), object->slots().size());
                for (std::size_t i = 0; i < object->slots().size(); ++i) {
                    made->setSlot(i, object->getSlot(i));
                }
                object = std::move(made);
            }
            for (const TreeObject::Child& child : one.children) {
                object->setSlot(child.slot, objects[child.object]);
            }
            objects.push_back(std::move(object));
        }
    }

    struct ChangedAttribute {
        c10::ClassTypePtr type;
        std::size_t slot;
        c10::TypePtr was;
    };

    const ClassGroups& tree_;
    std::vector<c10::ClassTypePtr> types_;  // by group
    std::vector<ChangedAttribute> changed_;
    HookClones hooks_;
};

}  // namespace

tl::expected<bool, NotSeparable> separate_classes(jit::Module& root, const Treatments& treatments) {
    const ClassGroups tree(root, treatments);
    std::unordered_set<const void*> classes;
    for (const ClassGroup& group : tree.groups) {
        classes.insert(group.type.get());
    }
    if (classes.size() == tree.groups.size()) {
        return false;
    }
    // What is refused may be a clone that the attempt made: its instances are known by its origin.
    if (auto problem = Separation(tree).run()) {
        return tl::make_unexpected(NotSeparable{problem->type, problem->because});
    }
    return true;
}

}  // namespace twinkle::runtime
