#include "kernel/package.h"

#include "python/walk.h"

#include <algorithm>
#include <set>

namespace twinkle::kernel {
namespace {

using namespace python;

using Imported = std::vector<std::pair<std::string, Binding>>;

UnclearName unclear_at(const PackageModule& module, const Node& at, std::string why) {
    return {Problem{module.file, static_cast<int>(at.span.line), std::move(why)}.message()};
}

// The name at the root of a.b.c, a[0].b.
const Name* root_name(const Expr& expr) {
    if (const auto* attribute = as<Attribute>(expr)) {
        return root_name(*attribute->value);
    }
    if (const auto* subscript = as<Subscript>(expr)) {
        return root_name(*subscript->value);
    }
    return as<Name>(expr);
}

// Attributes of a function or class that say something of it and change nothing.
bool is_description(const std::string& attribute) {
    static const std::set<std::string> known = {
        "__doc__",      "__module__",        "__name__",         "__qualname__",
        "has_backward", "can_torch_compile", "kernel_layer_name"};
    return known.contains(attribute);
}

// What a statement at module level changes of something that has a name already: K.forward = f,
// setattr(K, …), del K, for K in ….
std::vector<const Name*> changed_by(const Stmt& statement) {
    std::vector<const Expr*> targets;
    if (const auto* assign = as<Assign>(statement)) {
        for (const ExprPtr& target : assign->targets) {
            const auto* attribute = as<Attribute>(target);
            if (attribute != nullptr && !is_description(attribute->attr)) {
                targets.push_back(target.get());
            }
        }
    } else if (const auto* removed = as<Delete>(statement)) {
        for (const ExprPtr& target : removed->targets) {
            targets.push_back(target.get());
        }
    } else if (const auto* loop = as<For>(statement)) {
        targets.push_back(loop->target.get());
    } else if (const auto* single = as<ExprStmt>(statement)) {
        const auto* call = as<Call>(single->value);
        const auto* called = call ? as<Name>(call->func) : nullptr;
        if (called != nullptr && (called->id == "setattr" || called->id == "delattr") &&
            !call->args.empty()) {
            targets.push_back(call->args.front().get());
        }
    }
    std::vector<const Name*> names;
    for (const Expr* target : targets) {
        if (const Name* name = root_name(*target)) {
            names.push_back(name);
        }
    }
    return names;
}

// Names that functions and statements change later: their value is not the one that they began
// with.
void mark_changed(PackageModule& module) {
    const auto unclear = [&](const std::string& name, const Node& at) {
        const auto known = module.names.find(name);
        if (known != module.names.end()) {
            known->second = unclear_at(module, at, name + " is a module variable that changes");
        }
    };
    for (const StmtPtr& statement : module.tree->body) {
        for (const Name* name : changed_by(*statement)) {
            unclear(name->id, *statement);
        }
        if (const auto* added = as<AugAssign>(statement)) {
            if (const auto* name = as<Name>(added->target)) {
                unclear(name->id, *statement);
            }
        }
        walk(*statement, [&](const Node& node) {
            if (const auto* global = as<Global>(node)) {
                for (const std::string& name : global->names) {
                    unclear(name, node);
                }
            } else if (const auto* element = as<Subscript>(node);
                       element != nullptr && element->ctx != ExprContext::Load) {
                const auto* owner = as<Name>(element->value);
                const auto known = owner ? module.names.find(owner->id) : module.names.end();
                if (known != module.names.end() &&
                    std::holds_alternative<const Expr*>(known->second)) {
                    unclear(owner->id, node);
                }
            } else if (const auto* call = as<Call>(node)) {
                static const std::set<std::string> changing = {
                    "append", "extend", "insert", "update", "setdefault", "pop", "clear", "remove"};
                const auto* method = as<Attribute>(call->func);
                const auto* owner = method ? as<Name>(method->value) : nullptr;
                const auto known = owner ? module.names.find(owner->id) : module.names.end();
                if (known != module.names.end() && changing.contains(method->attr) &&
                    std::holds_alternative<const Expr*>(known->second)) {
                    unclear(owner->id, node);
                }
            }
            return true;
        });
    }
}

std::string parent_of(const std::string& module) {
    const auto dot = module.rfind('.');
    return dot == std::string::npos ? "" : module.substr(0, dot);
}

// "" for __init__.py, "sub.mod" for sub/mod.py.
std::string name_of(std::string file) {
    const auto length = file.ends_with("__init__.py") ? std::string_view("/__init__.py").size()
                                                      : std::string_view(".py").size();
    file.resize(file.size() - std::min(file.size(), length));
    std::replace(file.begin(), file.end(), '/', '.');
    return file;
}

Imported imported(const Import& import) {
    Imported result;
    for (const Alias& alias : import.names) {
        // `import a.b` binds a; `import a.b as c` binds a.b
        const std::string first = alias.name.substr(0, alias.name.find('.'));
        result.emplace_back(alias.asname.value_or(first),
                            ForeignModule{alias.asname ? alias.name : first});
    }
    return result;
}

// The module of this package that names are imported from; none where it is above the package.
std::optional<std::string> origin_of(const PackageModule& module, const ImportFrom& import) {
    std::string base = module.is_package ? module.name : parent_of(module.name);
    for (int level = 1; level < import.level; ++level) {
        if (base.empty()) {
            return std::nullopt;
        }
        base = parent_of(base);
    }
    return base.empty() ? import.module : import.module.empty() ? base : base + "." + import.module;
}

Imported imported(const PackageModule& module, const ImportFrom& import) {
    Imported result;
    // Above the package there is nothing, under no name.
    const std::string from = origin_of(module, import).value_or("..." + import.module);
    for (const Alias& alias : import.names) {
        const std::string bound = alias.asname.value_or(alias.name);
        if (alias.name == "*") {
            continue;
        }
        if (import.level == 0) {
            result.emplace_back(bound, ForeignName{import.module, alias.name});
        } else {
            result.emplace_back(bound, OwnName{from, alias.name});
        }
    }
    return result;
}

}  // namespace

std::string Package::dotted(const std::string& base, const std::string& name) {
    return base.empty() ? name : name.empty() ? base : base + "." + name;
}

void Package::cannot_parse(const SyntaxError& error) {
    problems_.push_back({error.origin, static_cast<int>(error.line), error.message});
}

// A package comes before a module of its name, as in Python.
std::optional<std::string> Package::file_of(const std::string& name) const {
    std::string path = name;
    std::replace(path.begin(), path.end(), '.', '/');
    const std::string init = path.empty() ? "__init__.py" : path + "/__init__.py";
    if (sources_.contains(init)) {
        return init;
    }
    return !path.empty() && sources_.contains(path + ".py") ? std::optional(path + ".py")
                                                            : std::nullopt;
}

const PackageModule* Package::module(const std::string& name) {
    const auto file = file_of(name);
    return file ? module_in(*file) : nullptr;
}

const PackageModule* Package::module_in(const std::string& file) {
    if (const auto known = modules_.find(file); known != modules_.end()) {
        return known->second.get();
    }
    const auto source = sources_.find(file);
    if (source == sources_.end()) {
        return nullptr;
    }
    auto parsed = parse_module(source->second, file);
    if (!parsed) {
        cannot_parse(parsed.error());
        modules_[file] = nullptr;
        return nullptr;
    }
    auto& made = modules_[file] = std::make_unique<PackageModule>();
    made->name = name_of(file);
    made->is_package = file.ends_with("__init__.py");
    made->file = file;
    made->source = source->second;
    made->tree = std::move(*parsed);
    bind(*made, made->tree->body, Certainty::certain);
    mark_changed(*made);
    return made.get();
}

// Of several bindings the last one counts; of alternatives (the branches of if and try) none,
// unless the first is a module of this package, whose import cannot fail.
void Package::bind(PackageModule& module, const std::string& name, const Binding& binding,
                   Certainty certainty, const Node& at) {
    if (certainty < Certainty::perhaps) {
        module.likely.insert_or_assign(name, binding);
    } else {
        module.likely.try_emplace(name, binding);
    }
    const auto known = module.names.find(name);
    if (known == module.names.end()) {
        module.names.emplace(name, binding);
        return;
    }
    const bool sure = std::holds_alternative<OwnName>(known->second) ||
                      std::holds_alternative<OwnModule>(known->second);
    if (certainty == Certainty::otherwise && sure) {
        return;
    }
    // A default value has kept the first of two constants.
    const bool changes = std::holds_alternative<const Expr*>(known->second) &&
                         std::holds_alternative<const Expr*>(binding);
    if (certainty == Certainty::certain && !changes) {
        known->second = binding;
        return;
    }
    known->second = unclear_at(module, at, "what " + name + " stands for depends on what is run");
}

void Package::bind_targets(PackageModule& module, const Assign& assign, Certainty certainty) {
    for (const ExprPtr& target : assign.targets) {
        if (const auto* name = as<Name>(target)) {
            bind(module, name->id, assign.value.get(), certainty, assign);
            continue;
        }
        // a, b = 1, 2
        const auto* names = as<Tuple>(target);
        const auto* values = as<Tuple>(assign.value);
        for (std::size_t i = 0; names != nullptr && i < names->elts.size(); ++i) {
            const auto* name = as<Name>(names->elts[i]);
            if (name != nullptr && values != nullptr && values->elts.size() == names->elts.size()) {
                bind(module, name->id, values->elts[i].get(), certainty, assign);
            } else if (name != nullptr) {
                bind(module, name->id,
                     unclear_at(module, assign, name->id + " is an element of a module constant"),
                     certainty, assign);
            }
        }
    }
}

void Package::bind(PackageModule& module, const Block& body, Certainty certainty) {
    for (const StmtPtr& statement : body) {
        if (const auto* function = as<FunctionDef>(statement)) {
            bind(module, function->name, function, certainty, *statement);
        } else if (const auto* type = as<ClassDef>(statement)) {
            bind(module, type->name, type, certainty, *statement);
        } else if (const auto* assign = as<Assign>(statement)) {
            bind_targets(module, *assign, certainty);
        } else if (const auto* annotated = as<AnnAssign>(statement)) {
            if (const auto* name = as<Name>(annotated->target); name && annotated->value) {
                bind(module, name->id, annotated->value.get(), certainty, *statement);
            }
        } else if (const auto* import = as<Import>(statement)) {
            for (const auto& [name, binding] : imported(*import)) {
                bind(module, name, binding, certainty, *statement);
            }
        } else if (const auto* from = as<ImportFrom>(statement)) {
            bind_import(module, *from, certainty);
        } else {
            bind_alternatives(module, *statement, certainty);
        }
    }
}

void Package::bind_import(PackageModule& module, const ImportFrom& from, Certainty certainty) {
    for (const auto& [name, binding] : imported(module, from)) {
        bind(module, name, binding, certainty, from);
    }
    if (from.level == 0) {
        return;
    }
    const auto origin = origin_of(module, from);
    const bool is_there = origin && has_module(*origin);
    for (const Alias& alias : from.names) {
        if (alias.name == "*" && is_there) {
            module.star_imports.push_back(*origin);
        }
    }
    // _ops is written by the build of a kernel; sources are read without it. Without an
    // __init__.py, `from . import norm` still names a module.
    if (!is_there && certainty < Certainty::perhaps && !from.module.empty() &&
        from.module != "_ops") {
        problems_.push_back({module.file, static_cast<int>(from.span.line),
                             "imports from a module that the package does not have: " +
                                 std::string(static_cast<std::size_t>(from.level), '.') +
                                 from.module});
    }
}

void Package::bind_alternatives(PackageModule& module, const Stmt& statement, Certainty certainty) {
    if (const auto* branch = as<If>(statement)) {
        bind(module, branch->body, std::max(certainty, Certainty::perhaps));
        bind(module, branch->orelse, Certainty::otherwise);
    } else if (const auto* attempt = as<Try>(statement)) {
        const Certainty tried = std::max(certainty, Certainty::tried);
        bind(module, attempt->body, tried);
        bind(module, attempt->orelse, tried);
        for (const ExceptHandler& handler : attempt->handlers) {
            bind(module, handler.body, Certainty::otherwise);
        }
        bind(module, attempt->finalbody, certainty);
    } else if (const auto* with = as<With>(statement)) {
        bind(module, with->body, certainty);
    }
}

Bindings Package::imports_in(const PackageModule& module, const FunctionDef& function) {
    Bindings names;
    for (const StmtPtr& statement : function.body) {
        walk(*statement, [&](const Node& node) {
            std::vector<std::pair<std::string, Binding>> found;
            if (const auto* import = as<Import>(node)) {
                found = imported(*import);
            } else if (const auto* from = as<ImportFrom>(node)) {
                found = imported(module, *from);
            }
            for (auto& [name, binding] : found) {
                if (!names.emplace(name, binding).second) {
                    names[name] =
                        unclear_at(module, node, name + " is imported twice in " + function.name);
                }
            }
            return as<FunctionDef>(node) == nullptr;
        });
    }
    return names;
}

}  // namespace twinkle::kernel
