// What lowered trees ask the resolver for, because it takes types to answer.

#include "runtime/graph/class_name.h"
#include "runtime/graph/format.h"
#include "runtime/graph/kernel_method.h"
#include "runtime/source/host_value.h"
#include "runtime/source/own_values.h"
#include "runtime/source/python_values.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Value = std::shared_ptr<jit::SugaredValue>;
using Arguments = at::ArrayRef<jit::NamedValue>;
using Call = std::function<Value(const jit::SourceRange&, jit::GraphFunction&, Arguments)>;

struct SpecialValue : jit::SugaredValue {
    SpecialValue(std::string description, Call function)
        : what(std::move(description)), made(std::move(function)) {}
    std::string kind() const override { return what; }
    Value call(const jit::SourceRange& loc, jit::GraphFunction& m, Arguments args, Arguments,
               size_t) override {
        return made(loc, m, args);
    }
    std::string what;
    Call made;
};

Value simple(jit::Value* value) {
    return std::make_shared<jit::SimpleValue>(value);
}

jit::Value* list_of(const jit::SourceRange& loc, jit::Graph& graph,
                    const std::vector<jit::Value*>& elements) {
    for (const jit::Value* element : elements) {
        if (*element->type() != *elements.front()->type()) {
            throw(jit::ErrorReport(loc) << "a list of several types");
        }
    }
    return graph.insertNode(graph.createList(elements.front()->type(), elements))->output();
}

// Tuples give a tuple (or a list, where one is wanted); with a list among them all is a list.
Value joined(const jit::SourceRange& loc, jit::GraphFunction& m, Arguments parts, bool list) {
    jit::Graph& graph = *m.graph();
    std::vector<std::vector<jit::Value*>> tuples;  // an empty one stands for the list at its place
    std::vector<jit::Value*> lists;
    for (const jit::NamedValue& part : parts) {
        jit::Value* value = part.value(graph);
        tuples.emplace_back();
        lists.push_back(nullptr);
        if (value->type()->kind() == c10::TypeKind::ListType) {
            lists.back() = value;
        } else if (value->type()->kind() == c10::TypeKind::TupleType) {
            for (const Value& element : jit::SimpleValue(value).asTuple(loc, m)) {
                tuples.back().push_back(element->asValue(loc, m));
            }
        } else {
            throw(jit::ErrorReport(loc) << "a star in front of " << value->type()->repr_str()
                                        << ", which is no sequence");
        }
    }
    bool all_tuples = true;
    std::vector<jit::Value*> elements;
    for (std::size_t i = 0; i < tuples.size(); ++i) {
        all_tuples = all_tuples && lists[i] == nullptr;
        elements.insert(elements.end(), tuples[i].begin(), tuples[i].end());
    }
    if (all_tuples && !list) {
        return simple(graph.insertNode(graph.createTuple(elements))->output());
    }
    if (all_tuples) {
        if (elements.empty()) {
            throw(jit::ErrorReport(loc) << "an empty list without a type");
        }
        return simple(list_of(loc, graph, elements));
    }
    jit::Value* result = nullptr;
    for (std::size_t i = 0; i < tuples.size(); ++i) {
        jit::Value* one = lists[i];
        if (one == nullptr) {
            if (tuples[i].empty()) {
                continue;
            }
            one = list_of(loc, graph, tuples[i]);
        }
        result = result == nullptr
                     ? one
                     : jit::emitBuiltinCall(loc, graph, c10::aten::add, {result, one}, {});
    }
    return simple(result);
}

// view(*shape): a list stands for its elements only where sizes are wanted.
Value sizes(const jit::SourceRange& loc, jit::GraphFunction& m, Arguments parts) {
    const Value all = joined(loc, m, parts, false);
    const c10::TypePtr type = all->asValue(loc, m)->type();
    if (const auto list = type->cast<c10::ListType>();
        list != nullptr && *list->getElementType() != *c10::IntType::get()) {
        throw(jit::ErrorReport(loc) << "a starred argument of " << type->repr_str());
    }
    return all;
}

// Python's int ** int is an int, TorchScript's a float.
Value power(const jit::SourceRange& loc, jit::GraphFunction& m, Arguments args) {
    jit::Graph& graph = *m.graph();
    jit::Value* base = args[0].value(graph);
    jit::Value* exponent = args[1].value(graph);
    if (base->type()->kind() != c10::TypeKind::IntType ||
        exponent->type()->kind() != c10::TypeKind::IntType) {
        return simple(jit::emitBuiltinCall(loc, graph, c10::aten::pow, args, {}));
    }
    constexpr std::int64_t largest = 62;
    const auto times = jit::toIValue(exponent);
    if (!times || times->toInt() < 0 || times->toInt() > largest) {
        throw(jit::ErrorReport(loc) << "an integer to the power of an integer, except a constant "
                                       "from 0 to 62");
    }
    jit::Value* result = graph.insertConstant(1, loc);
    for (std::int64_t i = 0; i < times->toInt(); ++i) {
        result = jit::emitBuiltinCall(loc, graph, c10::aten::mul, {result, base}, {});
    }
    return simple(result);
}

Value flag(const jit::SourceRange& loc, jit::GraphFunction& m, Arguments args) {
    jit::Value* value = args[0].value(*m.graph());
    if (value->type()->kind() != c10::TypeKind::BoolType) {
        throw(jit::ErrorReport(loc)
              << "`and` or `or` of a value of type " << value->type()->repr_str()
              << ", whose result would be that value; in TorchScript it is a flag");
    }
    return simple(value);
}

Value constant(const jit::SourceRange& loc, jit::GraphFunction& m, bool value) {
    return simple(m.graph()->insertConstant(value, loc));
}

// Whether a module's class is torch.nn's of this name, "torch.nn.Linear". A saved class has lost
// what it inherits from. One with hooks is not, as who reads its parameters would skip these, nor
// one whose parameters may be a kernel's own.
Value is_module(const jit::SourceRange& loc, jit::GraphFunction& m, Arguments args) {
    const auto type = args[0].value(*m.graph())->type()->cast<c10::ClassType>();
    if (type == nullptr || !type->is_module() || !type->getForwardHooks().empty() ||
        !type->getForwardPreHooks().empty() || may_have_own_weights(*type)) {
        return constant(loc, m, false);
    }
    const auto wanted = jit::toIValue(args[1].value(*m.graph()));
    const std::string& asked = wanted->toStringRef();
    const std::string name = unmangled(type->name()->qualifiedName());
    const std::string last = asked.substr(asked.rfind('.'));
    return constant(loc, m, name.starts_with("torch.nn.modules.") && name.ends_with(last));
}

// with torch.no_grad(): an object of a class of ours, so that an exception restores the mode too.
c10::ClassTypePtr grad_mode_class(const std::shared_ptr<jit::CompilationUnit>& unit, bool enabled) {
    const c10::QualifiedName name(std::string(kernel_code) + (enabled ? "enable_grad" : "no_grad"));
    if (const auto known = unit->get_class(name)) {
        return known;
    }
    auto type = c10::ClassType::create(name, unit, /*is_module=*/false);
    type->addAttribute("previous", c10::BoolType::get());
    unit->register_type(type);
    const std::string source = fmt::format(R"(
def __init__(self) -> None:
    self.previous = torch.is_grad_enabled()
def __enter__(self) -> None:
    self.previous = torch.is_grad_enabled()
    torch.set_grad_enabled({})
def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
    torch.set_grad_enabled(self.previous)
)",
                                           enabled ? "True" : "False");
    const jit::SimpleSelf self(type);
    unit->define(name, source, jit::nativeResolver(), &self);
    return type;
}

struct ComputedConstant : jit::SugaredValue {
    explicit ComputedConstant(jit::Function* made_by) : function(made_by) {}
    std::string kind() const override { return "module constant"; }
    jit::SimpleValue value(const jit::SourceRange& loc, jit::GraphFunction& m) const {
        return jit::SimpleValue(
            jit::FunctionValue(function).call(loc, m, {}, {}, 1)->asValue(loc, m));
    }
    jit::Value* asValue(const jit::SourceRange& loc, jit::GraphFunction& m) override {
        return value(loc, m).getValue();
    }
    std::vector<Value> asTuple(const jit::SourceRange& loc, jit::GraphFunction& m,
                               const std::optional<size_t>& hint) override {
        return value(loc, m).asTuple(loc, m, hint);
    }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction& m,
               const std::string& field) override {
        return value(loc, m).attr(loc, m, field);
    }
    Value iter(const jit::SourceRange& loc, jit::GraphFunction& m) override {
        return value(loc, m).iter(loc, m);
    }
    jit::Value* len(const jit::SourceRange& loc, jit::GraphFunction& m) override {
        return value(loc, m).len(loc, m);
    }
    Value getitem(const jit::SourceRange& loc, jit::GraphFunction& m, jit::Value* index,
                  c10::TypePtr hint) override {
        return value(loc, m).getitem(loc, m, index, hint);
    }
    jit::Function* function;
};

}  // namespace

Value computed_constant(jit::Function* function) {
    return std::make_shared<ComputedConstant>(function);
}

Value lowered_name_value(Compilation& compilation, const std::string& name) {
    const auto special = [](std::string what, Call call) {
        return std::make_shared<SpecialValue>(std::move(what), std::move(call));
    };
    const bool enables = name == lowered_name::grad;
    if (name == lowered_name::sequence || name == lowered_name::listed) {
        const bool list = name == lowered_name::listed;
        return special("a sequence", [list](const auto& loc, auto& m, Arguments args) {
            return joined(loc, m, args, list);
        });
    }
    if (name == lowered_name::sizes) {
        return special("sizes", [](const auto& loc, auto& m, Arguments args) -> Value {
            return sizes(loc, m, args);
        });
    }
    if (name == lowered_name::text) {
        return special("a text", emit_text);
    }
    if (name == lowered_name::format) {
        return special("a formatted value", emit_format);
    }
    if (name == lowered_name::truth) {
        return special("a truth value", emit_truth);
    }
    if (name == lowered_name::equal) {
        return special("a comparison", emit_equal);
    }
    if (name == lowered_name::power) {
        return special("a power", power);
    }
    if (name == lowered_name::flag) {
        return special("a flag", flag);
    }
    if (name == lowered_name::is_module) {
        return special("isinstance", is_module);
    }
    if (name == lowered_name::has_grad) {
        // A model for training may be asked for any gradient, one for inference for none.
        return special("torch.is_grad_enabled",
                       [trains = compilation.trains()](const auto& loc, auto& m, Arguments) {
                           return constant(loc, m, trains);
                       });
    }
    if (name == lowered_name::module) {
        return special(
            "a module",
            [in = compilation.shared_from_this()](const auto&, auto& m, Arguments args) -> Value {
                return module_value(args[0].value(*m.graph()), in->host());
            });
    }
    if (enables || name == lowered_name::no_grad) {
        return std::make_shared<jit::ClassValue>(
            grad_mode_class(compilation.shared_unit(), enables));
    }
    return nullptr;
}

}  // namespace twinkle::runtime
