#include "runtime/source/own_values.h"

#include "runtime/graph/format.h"
#include "runtime/source/host_value.h"
#include "runtime/source/known_value.h"
#include "runtime/source/partial_value.h"
#include "runtime/source/torch_names.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

using Value = std::shared_ptr<jit::SugaredValue>;

std::string title(const PackageModule& module) {
    return module.name.empty() ? "__init__" : module.name;
}

struct OwnModuleValue : jit::SugaredValue {
    OwnModuleValue(std::shared_ptr<Compilation> in, const PackageModule& which)
        : compilation(std::move(in)), module(which) {}
    std::string kind() const override { return "module " + title(module) + " of the kernel"; }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction&,
               const std::string& field) override {
        if (Value value = compilation->value_of(module, {}, field, loc)) {
            return value;
        }
        throw(jit::ErrorReport(loc) << "the " << kind() << " has no " << field);
    }
    std::shared_ptr<Compilation> compilation;
    const PackageModule& module;
};

bool is_module(const c10::TypePtr& type) {
    const auto known = type->cast<c10::ClassType>();
    return known != nullptr && known->is_module();
}

// Compiled when it is called, for the types that it is called with.
struct OwnFunctionValue : jit::SugaredValue {
    OwnFunctionValue(std::shared_ptr<Compilation> in, const PackageModule& which,
                     const py::FunctionDef& definition)
        : compilation(std::move(in)), module(which), def(definition) {
        for (const py::Arg& arg : def.args.posonlyargs) {
            positional.push_back(arg.arg);
        }
        for (const py::Arg& arg : def.args.args) {
            positional.push_back(arg.arg);
        }
        names.insert(positional.begin() + static_cast<std::ptrdiff_t>(def.args.posonlyargs.size()),
                     positional.end());
        for (const py::Arg& arg : def.args.kwonlyargs) {
            names.insert(arg.arg);
        }
    }

    std::string kind() const override { return "function " + def.name; }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction& m,
               const std::string& field) override {
        return field == lowered_name::partial ? partial_maker(shared_from_this())
                                              : SugaredValue::attr(loc, m, field);
    }

    Value call(const jit::SourceRange& loc, jit::GraphFunction& m,
               at::ArrayRef<jit::NamedValue> args, at::ArrayRef<jit::NamedValue> kwargs,
               size_t n_binders) override {
        if (args.size() > positional.size() && !def.args.vararg) {
            throw(jit::ErrorReport(loc) << def.name << " takes " << positional.size()
                                        << " positional arguments, not " << args.size());
        }
        Site site{loc, m, {}, {}, false};
        for (std::size_t i = 0; i < args.size(); ++i) {
            if (i < positional.size()) {
                give(site, positional[i], args[i]);
            } else {
                give_rest(site, i - positional.size(), args[i]);
            }
        }
        for (const jit::NamedValue& argument : kwargs) {
            if (!names.contains(argument.name())) {
                throw(jit::ErrorReport(loc)
                      << def.name << " has no parameter " << argument.name()
                      << (def.args.kwarg ? "; what goes into its **" + def.args.kwarg->arg +
                                               " cannot be compiled"
                                         : std::string()));
            }
            give(site, argument.name(), argument);
        }
        jit::Function* function =
            compilation->function(module, def, site.parameters, site.has_module);
        if (!site.has_module) {
            return jit::FunctionValue(function).call(loc, m, {}, site.values, n_binders);
        }
        // Modules are attributes of modules, not arguments of functions: it becomes part of its
        // caller.
        const auto matched =
            jit::matchSchema(function->getSchema(), loc, *m.graph(), {}, site.values);
        const auto results =
            jit::insertGraph(*m.graph(), *jit::toGraphFunction(*function).graph(), matched.inputs);
        compilation->unit().unsafeRemoveMethod(function->qualname());
        return std::make_shared<jit::SimpleValue>(results.at(0));
    }

    struct Site {
        const jit::SourceRange& loc;
        jit::GraphFunction& m;
        std::vector<LoweredParameter> parameters;
        std::vector<jit::NamedValue> values;
        bool has_module = false;
    };

    // An element of *args.
    void give_rest(Site& site, std::size_t index, const jit::NamedValue& argument) {
        jit::Value* value = argument.value(*site.m.graph());
        if (is_module(value->type())) {
            throw(jit::ErrorReport(site.loc)
                  << "a module in *" << def.args.vararg->arg << " of " << def.name);
        }
        const std::string name = fmt::format("_twinkle_rest_{}", index);
        site.parameters.push_back(
            {.name = name, .type = compilation->name_of(value->type()), .in_rest = true});
        site.values.emplace_back(site.loc, name, value);
    }

    void give(Site& site, const std::string& name, const jit::NamedValue& argument) {
        for (const LoweredParameter& given : site.parameters) {
            if (given.name == name) {
                throw(jit::ErrorReport(site.loc) << def.name << " is given " << name << " twice");
            }
        }
        jit::Value* value = argument.value(*site.m.graph());
        LoweredParameter parameter{name, "", known_constant(value), is_module(value->type())};
        if (!parameter.constant) {
            parameter.type = compilation->name_of(value->type());
            site.values.emplace_back(site.loc, name, value);
        }
        site.has_module = site.has_module || parameter.is_module;
        site.parameters.push_back(std::move(parameter));
    }

    std::shared_ptr<Compilation> compilation;
    const PackageModule& module;
    const py::FunctionDef& def;
    std::vector<std::string> positional;
    std::set<std::string> names;  // that keywords may have
};

// The names of what a class derives from: "builtins.ValueError", "typing.NamedTuple", …
std::set<std::string> bases_of(Compilation& compilation, const PackageModule& module,
                               const py::ClassDef& type, int depth = 0) {
    constexpr int deepest = 8;
    std::set<std::string> names;
    for (const py::ExprPtr& base : type.bases) {
        const std::string external = compilation.external_name(module, {}, *base);
        if (!external.empty()) {
            names.insert(external);
            continue;
        }
        const auto* name = py::as<py::Name>(base);
        const auto found =
            name ? compilation.package().find(module.name, name->id) : KernelPackage::Definition{};
        const auto* parent =
            found.module ? std::get_if<const py::ClassDef*>(found.binding) : nullptr;
        if (parent != nullptr && depth < deepest) {
            names.merge(bases_of(compilation, *found.module, **parent, depth + 1));
        }
    }
    return names;
}

bool is_dataclass(Compilation& compilation, const PackageModule& module, const py::ClassDef& type) {
    return std::any_of(
        type.decorator_list.begin(), type.decorator_list.end(), [&](const py::ExprPtr& one) {
            const auto* call = py::as<py::Call>(one);
            return compilation.external_name(module, {}, call ? *call->func : *one) ==
                   "dataclasses.dataclass";
        });
}

// A dataclass or NamedTuple: its objects are named tuples.
struct RecordValue : jit::SugaredValue {
    RecordValue(std::shared_ptr<Compilation> in, const PackageModule& which,
                const py::ClassDef& definition)
        : compilation(std::move(in)), module(which), type(definition) {
        for (const py::StmtPtr& statement : type.body) {
            const auto* field = py::as<py::AnnAssign>(statement);
            const auto* name = field ? py::as<py::Name>(field->target) : nullptr;
            if (name != nullptr) {
                fields.push_back({name->id, field->value.get()});
            }
        }
    }
    struct Field {
        std::string name;
        const py::Expr* fallback;
    };

    std::string kind() const override { return "class " + type.name; }

    Value call(const jit::SourceRange& loc, jit::GraphFunction& m,
               at::ArrayRef<jit::NamedValue> args, at::ArrayRef<jit::NamedValue> kwargs,
               size_t) override {
        refuse_custom(loc);
        if (args.size() > fields.size()) {
            throw(jit::ErrorReport(loc) << type.name << " has " << fields.size() << " fields");
        }
        for (const jit::NamedValue& argument : kwargs) {
            if (std::none_of(fields.begin(), fields.end(),
                             [&](const Field& one) { return one.name == argument.name(); })) {
                throw(jit::ErrorReport(loc) << type.name << " has no field " << argument.name());
            }
        }
        std::vector<std::string> names;
        std::vector<c10::TypePtr> types;
        std::vector<jit::Value*> values;
        for (std::size_t i = 0; i < fields.size(); ++i) {
            values.push_back(i < args.size() ? args[i].value(*m.graph())
                                             : keyword_or_default(loc, m, fields[i], kwargs));
            names.push_back(fields[i].name);
            types.push_back(c10::unshapedType(values.back()->type()));
        }
        const auto made = compilation->record(module, type, names, types);
        return std::make_shared<jit::SimpleValue>(
            m.graph()->insertNode(m.graph()->createTuple(values, made))->output());
    }

    jit::Value* keyword_or_default(const jit::SourceRange& loc, jit::GraphFunction& m,
                                   const Field& field, at::ArrayRef<jit::NamedValue> kwargs) {
        for (const jit::NamedValue& argument : kwargs) {
            if (argument.name() == field.name) {
                return argument.value(*m.graph());
            }
        }
        const auto* constant = py::as<py::Constant>(field.fallback);
        if (constant == nullptr) {
            throw(jit::ErrorReport(loc)
                  << "the field " << field.name << " of " << type.name
                  << (field.fallback ? " has a computed default" : " gets no value"));
        }
        const Value value = literal_value(*constant);
        if (value == nullptr) {
            throw(jit::ErrorReport(loc) << "the default of the field " << field.name);
        }
        return value->asValue(loc, m);
    }

    void refuse_custom(const jit::SourceRange& loc) const {
        for (const py::StmtPtr& statement : type.body) {
            const auto* method = py::as<py::FunctionDef>(statement);
            if (method != nullptr && method->name.starts_with("__")) {
                throw(jit::ErrorReport(loc) << "the class " << type.name << " has " << method->name
                                            << ", which is Python's");
            }
        }
    }

    std::shared_ptr<Compilation> compilation;
    const PackageModule& module;
    const py::ClassDef& type;
    std::vector<Field> fields;
};

// RotateStyle.NEOX of an IntEnum, Config.BLOCK of a plain class: literals.
struct NamespaceValue : jit::SugaredValue {
    NamespaceValue(const py::ClassDef& definition, bool readable)
        : type(definition), constants(readable) {}
    std::string kind() const override { return "Python class " + type.name; }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction&,
               const std::string& field) override {
        for (const py::StmtPtr& statement : type.body) {
            const auto* assign = py::as<py::Assign>(statement);
            const auto* name = assign ? py::as<py::Name>(assign->targets.front()) : nullptr;
            const auto* literal = assign ? py::as<py::Constant>(assign->value) : nullptr;
            if (constants && name != nullptr && name->id == field && literal != nullptr) {
                if (Value value = literal_value(*literal)) {
                    return value;
                }
            }
        }
        throw(jit::ErrorReport(loc) << field << " of the " << kind());
    }
    Value call(const jit::SourceRange& loc, jit::GraphFunction&, at::ArrayRef<jit::NamedValue>,
               at::ArrayRef<jit::NamedValue>, size_t) override {
        throw(jit::ErrorReport(loc) << "makes an object of the " << kind());
    }
    const py::ClassDef& type;
    bool constants;
};

}  // namespace

Value own_module_value(std::shared_ptr<Compilation> compilation, const PackageModule& module) {
    return std::make_shared<OwnModuleValue>(std::move(compilation), module);
}

Value own_function_value(std::shared_ptr<Compilation> compilation, const PackageModule& module,
                         const py::FunctionDef& def) {
    return std::make_shared<OwnFunctionValue>(std::move(compilation), module, def);
}

Value own_class_value(std::shared_ptr<Compilation> compilation, const PackageModule& module,
                      const py::ClassDef& type) {
    const auto bases = bases_of(*compilation, module, type);
    for (const std::string& base : bases) {
        constexpr std::string_view builtins = "builtins.";
        if (base.starts_with(builtins) && is_exception(base.substr(builtins.size()))) {
            return std::make_shared<jit::ExceptionValue>(type.name);
        }
    }
    if (bases.contains("typing.NamedTuple") ||
        (bases.empty() && type.bases.empty() && is_dataclass(*compilation, module, type))) {
        return std::make_shared<RecordValue>(std::move(compilation), module, type);
    }
    const bool readable = type.bases.empty() || bases.contains("enum.IntEnum");
    return std::make_shared<NamespaceValue>(type, readable && type.decorator_list.empty());
}

}  // namespace twinkle::runtime
