#include "runtime/source/autograd_function.h"
#include "runtime/format.h"

#include "runtime/autograd/autograd_apply.h"
#include "runtime/source/autograd_context.h"
#include "runtime/source/none_first.h"

#include <algorithm>
#include <array>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

using Value = std::shared_ptr<jit::SugaredValue>;

constexpr int max_base_classes = 8;

struct ClassSource {
    const PackageModule* module = nullptr;
    const py::ClassDef* type = nullptr;
};

struct MethodSource {
    const PackageModule* module = nullptr;
    const py::FunctionDef* def = nullptr;
};

// "torch.autograd.Function", however the module has imported it; empty for what is no import.
std::string foreign_path(KernelPackage& package, const PackageModule& module,
                         const py::Expr& expr) {
    if (const auto* attribute = py::as<py::Attribute>(expr)) {
        const std::string base = foreign_path(package, module, *attribute->value);
        return base.empty() ? "" : base + "." + attribute->attr;
    }
    const auto* name = py::as<py::Name>(expr);
    const auto found = name ? package.find(module.name, name->id) : KernelPackage::Definition{};
    if (found.module == nullptr) {
        return "";
    }
    if (const auto* foreign = std::get_if<ForeignModule>(found.binding)) {
        return foreign->name;
    }
    const auto* foreign = std::get_if<ForeignName>(found.binding);
    return foreign ? foreign->module + "." + foreign->name : "";
}

std::vector<ClassSource> own_bases(KernelPackage& package, const ClassSource& of) {
    std::vector<ClassSource> bases;
    for (const py::ExprPtr& base : of.type->bases) {
        const auto* name = py::as<py::Name>(base);
        const auto found =
            name ? package.find(of.module->name, name->id) : KernelPackage::Definition{};
        const auto* type = found.module ? std::get_if<const py::ClassDef*>(found.binding) : nullptr;
        if (type != nullptr) {
            bases.push_back({found.module, *type});
        }
    }
    return bases;
}

bool is_function_class(KernelPackage& package, const ClassSource& type, int depth) {
    for (const py::ExprPtr& base : type.type->bases) {
        const std::string path = foreign_path(package, *type.module, *base);
        if (path == "torch.autograd.Function" || path == "torch.autograd.function.Function") {
            return true;
        }
    }
    const auto bases = own_bases(package, type);
    return depth < max_base_classes && std::any_of(
                                           bases.begin(), bases.end(),
                                           [&](const ClassSource& base) {
                                               return is_function_class(package, base, depth + 1);
                                           });
}

MethodSource find_method(KernelPackage& package, const ClassSource& type, const std::string& name,
                         int depth = 0) {
    for (const py::StmtPtr& statement : type.type->body) {
        const auto* def = py::as<py::FunctionDef>(statement);
        if (def != nullptr && def->name == name) {
            return {type.module, def};
        }
    }
    if (depth < max_base_classes) {
        for (const ClassSource& base : own_bases(package, type)) {
            if (const auto found = find_method(package, base, name, depth + 1); found.def) {
                return found;
            }
        }
    }
    return {};
}

std::vector<std::string> positional_parameters(const py::FunctionDef& def) {
    std::vector<std::string> names;
    for (const auto* list : {&def.args.posonlyargs, &def.args.args}) {
        for (const py::Arg& arg : *list) {
            names.push_back(arg.arg);
        }
    }
    return names;
}

// Others may change what is computed (make inputs contiguous, say), and would be lost.
void check_decorators(const MethodSource& method) {
    static constexpr std::array<std::string_view, 4> harmless = {
        "staticmethod", "once_differentiable", "custom_fwd", "custom_bwd"};
    for (const py::ExprPtr& decorator : method.def->decorator_list) {
        const py::Expr* named = decorator.get();
        if (const auto* call = py::as<py::Call>(*named)) {
            named = call->func.get();
        }
        const auto* attribute = py::as<py::Attribute>(*named);
        const auto* name = py::as<py::Name>(*named);
        const std::string last = attribute ? attribute->attr : name ? name->id : "";
        if (std::find(harmless.begin(), harmless.end(), last) == harmless.end()) {
            method.module->file->refuse(
                *method.def,
                "the decorator " + (last.empty() ? "" : last + " ") + "of " + method.def->name);
        }
    }
}

std::string identifier(std::string text) {
    std::replace(text.begin(), text.end(), '.', '_');
    return text.empty() ? "package" : text;
}

// One Function for one list of argument types.
class FunctionCompiler {
public:
    FunctionCompiler(Compilation& compilation, const ClassSource& source,
                     const std::vector<c10::TypePtr>& argument_types)
        : compilation_(compilation), source_(source), argument_types_(argument_types) {
        forward_ = required_method("forward");
        setup_ = find_method(compilation.package(), source, "setup_context");
        const auto names = positional_parameters(*forward_.def);
        if (!own_context() && names.empty()) {
            refuse(forward_, "forward has no parameter ctx");
        }
        context_ = own_context() ? "_twinkle_ctx" : names.front();
        const std::size_t first = own_context() ? 0 : 1;
        if (argument_types.size() > names.size() - first) {
            refuse(forward_, fmt::format("forward takes {} arguments, apply gives {}",
                                         names.size() - first, argument_types.size()));
        }
        for (std::size_t i = 0; i < argument_types.size(); ++i) {
            parameters_.push_back({names[first + i], compilation.name_of(argument_types[i])});
        }
    }

    // The class of ctx, with the methods that the operators call.
    c10::ClassTypePtr context_class() {
        const MethodSource backward = required_method("backward");
        const c10::QualifiedName name("__torch__.twinkle_kernels." +
                                      identifier(source_.module->name) + "." + source_.type->name);
        auto& unit = compilation_.unit();
        const bool taken = unit.get_type(name) != nullptr;
        const auto type = c10::ClassType::create(taken ? unit.mangle(name) : name,
                                                 compilation_.shared_unit(), /*is_module=*/false);
        unit.register_type(type);
        const auto output = define(type, forward_, parameters_, own_context());
        const std::size_t outputs = count_outputs(output);
        if (setup_.def != nullptr) {
            const auto names = positional_parameters(*setup_.def);
            if (names.size() != 3) {
                refuse(setup_, "setup_context takes ctx, inputs and output");
            }
            define(type, setup_,
                   {{names[0], ""},
                    {names[1], compilation_.name_of(c10::TupleType::create(argument_types_))},
                    {names[2], compilation_.name_of(output)}},
                   false);
        }
        check_gradients(backward, define(type, backward, gradients(backward, *type, outputs)));
        return type;
    }

    // Forward alone, where no gradient will come back; null if it needs its ctx.
    jit::Function* plain_forward() {
        auto tree = lower(forward_, parameters_);
        if (!own_context()) {
            const auto plain = without_context(tree, context_, argument_types_.size());
            if (!plain) {
                return nullptr;
            }
            tree = *plain;
        }
        const c10::QualifiedName prefix("__torch__.twinkle_kernels." +
                                        identifier(source_.module->name) + "." +
                                        source_.type->name);
        return compilation_.unit()
            .define(prefix, {}, {}, {tree}, {scope_of(forward_)}, nullptr,
                    /*shouldMangle=*/true)
            .front();
    }

private:
    // The newer style, in which forward has no ctx and setup_context follows it.
    bool own_context() const { return setup_.def != nullptr; }

    [[noreturn]] static void refuse(const MethodSource& at, const std::string& why) {
        at.module->file->refuse(*at.def, why);
    }

    MethodSource required_method(const std::string& name) {
        const MethodSource found = find_method(compilation_.package(), source_, name);
        if (found.def == nullptr) {
            source_.module->file->refuse(
                *source_.type, "the autograd.Function " + source_.type->name + " has no " + name);
        }
        return found;
    }

    jit::Def lower(const MethodSource& method, std::vector<LoweredParameter> parameters) const {
        check_decorators(method);
        if (method.def == forward_.def && !own_context()) {
            parameters.insert(parameters.begin(), {context_, ""});
        }
        const Bindings local = compilation_.package().imports_in(*method.module, *method.def);
        compilation_.charge(*method.module, *method.def, method.def->name);
        const auto tree = compilation_.lower(*method.module, local, *method.def, method.def->name,
                                             parameters, /*any_decorator=*/true);
        const auto optional = c10::OptionalType::create(c10::TensorType::get());
        return method.def->name == "backward"
                   ? annotate_none_first(tree, compilation_.name_of(optional))
                   : tree;
    }

    jit::ResolverPtr scope_of(const MethodSource& method) const {
        return compilation_.scope_of(
            *method.module, compilation_.package().imports_in(*method.module, *method.def));
    }

    // Adds a method to the class; returns the type of its result.
    c10::TypePtr define(const c10::ClassTypePtr& type, const MethodSource& method,
                        const std::vector<LoweredParameter>& parameters, bool add_self = false) {
        auto tree = lower(method, parameters);
        if (add_self) {
            const auto at = tree.range();
            std::vector<jit::Param> params{jit::Param::create(
                at, jit::Ident::create(at, context_), jit::Maybe<jit::Expr>::create(at),
                jit::Maybe<jit::Expr>::create(at), false)};
            for (const jit::Param& param : tree.decl().params()) {
                params.push_back(param);
            }
            tree = jit::Def::create(at, tree.name(),
                                    jit::Decl::create(at, jit::List<jit::Param>::create(at, params),
                                                      tree.decl().return_type()),
                                    tree.statements());
        }
        const ContextSelf self(type, argument_types_.size());
        compilation_.unit().define(type->name(), {}, {}, {tree}, {scope_of(method)}, &self);
        return type->getMethod(method.def->name).getSchema().returns().at(0).type();
    }

    std::size_t count_outputs(const c10::TypePtr& output) const {
        const auto is_tensor = [](const c10::TypePtr& one) {
            return one->isSubtypeOf(*c10::TensorType::get());
        };
        const auto tuple = output->cast<c10::TupleType>();
        if (tuple && !tuple->elements().empty() &&
            std::all_of(tuple->elements().begin(), tuple->elements().end(), is_tensor)) {
            return tuple->elements().size();
        }
        if (!is_tensor(output)) {
            refuse(forward_,
                   "forward returns " + output->repr_str() + "; a node of autograd gives tensors");
        }
        return 1;
    }

    std::vector<LoweredParameter> gradients(const MethodSource& backward,
                                            const c10::ClassType& type, std::size_t outputs) {
        const auto names = positional_parameters(*backward.def);
        if (names.size() < outputs + 1) {
            refuse(backward, fmt::format("backward takes {} gradients, forward gives {} tensors",
                                         names.empty() ? 0 : names.size() - 1, outputs));
        }
        // Without materialize_grads an output that nobody used has no gradient.
        c10::TypePtr gradient = c10::TensorType::get();
        if (type.hasAttribute(context_attribute::materialize_grads)) {
            gradient = c10::OptionalType::create(gradient);
        }
        std::vector<LoweredParameter> parameters{{names.front(), ""}};
        for (std::size_t i = 1; i <= outputs; ++i) {
            parameters.push_back({names[i], compilation_.name_of(gradient)});
        }
        return parameters;
    }

    // One gradient for each argument, as autograd wants it; more only if they are None.
    void check_gradients(const MethodSource& backward, const c10::TypePtr& result) const {
        const auto tuple = result->cast<c10::TupleType>();
        const auto given = tuple ? tuple->elements().vec() : std::vector<c10::TypePtr>{result};
        const auto optional = c10::OptionalType::create(c10::TensorType::get());
        for (std::size_t i = 0; i < given.size(); ++i) {
            const bool extra = i >= argument_types_.size();
            if (!given[i]->isSubtypeOf(extra ? c10::TypePtr(c10::NoneType::get())
                                             : c10::TypePtr(optional))) {
                refuse(backward, fmt::format("backward returns {} as gradient {}",
                                             given[i]->repr_str(), i + 1));
            }
        }
        if (given.size() < argument_types_.size()) {
            refuse(backward, fmt::format("backward returns {} gradients for {} arguments",
                                         given.size(), argument_types_.size()));
        }
    }

    Compilation& compilation_;
    ClassSource source_;
    std::vector<c10::TypePtr> argument_types_;
    MethodSource forward_;
    MethodSource setup_;
    std::string context_;
    std::vector<LoweredParameter> parameters_;
};

struct ApplyValue : jit::SugaredValue {
    ApplyValue(std::shared_ptr<Compilation> in, const ClassSource& function)
        : compilation(std::move(in)), source(function) {}
    std::string kind() const override { return source.type->name + ".apply"; }

    Value call(const jit::SourceRange& loc, jit::GraphFunction& m,
               at::ArrayRef<jit::NamedValue> args, at::ArrayRef<jit::NamedValue> kwargs,
               size_t n_binders) override {
        if (!kwargs.empty()) {
            throw(jit::ErrorReport(loc) << kind() << " takes no named arguments");
        }
        jit::Graph& graph = *m.graph();
        std::vector<jit::Value*> values;
        std::vector<c10::TypePtr> types;
        std::string key = source.module->name + ":" + source.type->name;
        for (const jit::NamedValue& argument : args) {
            values.push_back(argument.value(graph));
            types.push_back(c10::unshapedType(values.back()->type()));
            key += "," + compilation->name_of(types.back());
        }
        if (!compilation->trains()) {
            if (jit::Function* forward = plain_forward(key, types)) {
                return jit::FunctionValue(forward).call(loc, m, args, {}, n_binders);
            }
        }
        return node(loc, graph, context_class(key, types), values);
    }

    template <class Compile>
    auto entered(const std::string& key, const Compile& compile) {
        [[maybe_unused]] const auto guard = compilation->enter(
            *source.module, *source.type, "apply:" + key, source.type->name + ".apply");
        return compile();
    }

    jit::Function* plain_forward(const std::string& key, const std::vector<c10::TypePtr>& types) {
        auto& known = compilation->autograd_cache().forwards;
        const auto found = known.find(key);
        return found != known.end()
                   ? found->second
                   : known[key] = entered(key, [&] {
                         return FunctionCompiler(*compilation, source, types).plain_forward();
                     });
    }

    c10::ClassTypePtr context_class(const std::string& key,
                                    const std::vector<c10::TypePtr>& types) {
        auto& known = compilation->autograd_cache().classes;
        const auto found = known.find(key);
        return found != known.end()
                   ? found->second
                   : known[key] = entered(key, [&] {
                         return FunctionCompiler(*compilation, source, types).context_class();
                     });
    }

    static Value node(const jit::SourceRange& loc, jit::Graph& graph, const c10::ClassTypePtr& type,
                      const std::vector<jit::Value*>& values) {
        jit::Value* ctx = graph.insertNode(graph.createObject(type))->output();
        jit::Value* arguments = graph.insertNode(graph.createTuple(values))->output();
        const auto tuple =
            type->getMethod("forward").getSchema().returns().at(0).type()->cast<c10::TupleType>();
        const char* op = tuple ? "twinkle::autograd_apply_many" : "twinkle::autograd_apply";
        jit::Value* output = graph.insert(c10::Symbol::fromQualString(op), {ctx, arguments});
        output->node()->setSourceRange(loc);
        if (tuple) {
            const auto outputs =
                graph.insertNode(graph.createListUnpack(output, tuple->elements().size()))
                    ->outputs();
            output = graph.insertNode(graph.createTuple(outputs))->output();
        }
        return std::make_shared<jit::SimpleValue>(output);
    }

    std::shared_ptr<Compilation> compilation;
    ClassSource source;
};

struct FunctionClassValue : jit::SugaredValue {
    FunctionClassValue(std::shared_ptr<Compilation> in, const ClassSource& function)
        : compilation(std::move(in)), source(function) {}
    std::string kind() const override { return "autograd.Function " + source.type->name; }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction&,
               const std::string& field) override {
        if (field == "apply") {
            return std::make_shared<ApplyValue>(compilation, source);
        }
        throw(jit::ErrorReport(loc) << "of the " << kind() << " only apply is used, not " << field);
    }
    std::shared_ptr<Compilation> compilation;
    ClassSource source;
};

}  // namespace

bool is_autograd_function(KernelPackage& package, const PackageModule& module,
                          const py::ClassDef& type) {
    return is_function_class(package, {&module, &type}, 0);
}

Value autograd_function_value(std::shared_ptr<Compilation> compilation, const PackageModule& module,
                              const py::ClassDef& type) {
    return std::make_shared<FunctionClassValue>(std::move(compilation),
                                                ClassSource{&module, &type});
}

}  // namespace twinkle::runtime
