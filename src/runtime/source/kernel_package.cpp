#include "runtime/source/kernel_package.h"

#include "runtime/graph/format.h"

#include "python/parser.h"
#include "python/walk.h"

namespace twinkle::runtime {

namespace py = twinkle::python;

namespace {

constexpr int max_reexports = 16;

std::string package_root(const std::map<std::string, std::string>& sources) {
    if (sources.contains("__init__.py") || sources.contains("layers.py")) {
        return "";
    }
    for (const auto& [path, text] : sources) {
        const auto slash = path.find('/');
        if (slash != std::string::npos && path.substr(slash) == "/__init__.py") {
            return path.substr(0, slash + 1);
        }
    }
    return "";
}

std::string path_of(std::string module) {
    for (char& c : module) {
        c = c == '.' ? '/' : c;
    }
    return module;
}

std::string dotted(const std::string& base, const std::string& name) {
    return base.empty() ? name : name.empty() ? base : base + "." + name;
}

// The name at the root of a.b.c, a[0].b.
const py::Name* root_name(const py::Expr& expr) {
    if (const auto* attribute = py::as<py::Attribute>(expr)) {
        return root_name(*attribute->value);
    }
    if (const auto* subscript = py::as<py::Subscript>(expr)) {
        return root_name(*subscript->value);
    }
    return py::as<py::Name>(expr);
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
std::vector<const py::Name*> changed_by(const py::Stmt& statement) {
    std::vector<const py::Expr*> targets;
    if (const auto* assign = py::as<py::Assign>(statement)) {
        for (const py::ExprPtr& target : assign->targets) {
            const auto* attribute = py::as<py::Attribute>(target);
            if (attribute != nullptr && !is_description(attribute->attr)) {
                targets.push_back(target.get());
            }
        }
    } else if (const auto* removed = py::as<py::Delete>(statement)) {
        for (const py::ExprPtr& target : removed->targets) {
            targets.push_back(target.get());
        }
    } else if (const auto* loop = py::as<py::For>(statement)) {
        targets.push_back(loop->target.get());
    } else if (const auto* single = py::as<py::ExprStmt>(statement)) {
        const auto* call = py::as<py::Call>(single->value);
        const auto* called = call ? py::as<py::Name>(call->func) : nullptr;
        if (called != nullptr && (called->id == "setattr" || called->id == "delattr") &&
            !call->args.empty()) {
            targets.push_back(call->args.front().get());
        }
    }
    std::vector<const py::Name*> names;
    for (const py::Expr* target : targets) {
        if (const py::Name* name = root_name(*target)) {
            names.push_back(name);
        }
    }
    return names;
}

// Names that functions and statements change later: their value is not the one that they began
// with.
void mark_changed(PackageModule& module) {
    const auto unclear = [&](const std::string& name, const py::Node& at) {
        const auto known = module.names.find(name);
        if (known != module.names.end()) {
            known->second = UnclearName{fmt::format("{}:{}: {} is a module variable that changes",
                                                    module.file->path(), at.span.line, name)};
        }
    };
    for (const py::StmtPtr& statement : module.tree->body) {
        for (const py::Name* name : changed_by(*statement)) {
            unclear(name->id, *statement);
        }
        if (const auto* added = py::as<py::AugAssign>(statement)) {
            if (const auto* name = py::as<py::Name>(added->target)) {
                unclear(name->id, *statement);
            }
        }
        py::walk(*statement, [&](const py::Node& node) {
            if (const auto* global = py::as<py::Global>(node)) {
                for (const std::string& name : global->names) {
                    unclear(name, node);
                }
            } else if (const auto* element = py::as<py::Subscript>(node);
                       element != nullptr && element->ctx != py::ExprContext::Load) {
                const auto* owner = py::as<py::Name>(element->value);
                const auto known = owner ? module.names.find(owner->id) : module.names.end();
                if (known != module.names.end() &&
                    std::holds_alternative<const py::Expr*>(known->second)) {
                    unclear(owner->id, node);
                }
            } else if (const auto* call = py::as<py::Call>(node)) {
                static const std::set<std::string> changing = {
                    "append", "extend", "insert", "update", "setdefault", "pop", "clear", "remove"};
                const auto* method = py::as<py::Attribute>(call->func);
                const auto* owner = method ? py::as<py::Name>(method->value) : nullptr;
                const auto known = owner ? module.names.find(owner->id) : module.names.end();
                if (known != module.names.end() && changing.contains(method->attr) &&
                    std::holds_alternative<const py::Expr*>(known->second)) {
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

}  // namespace

std::map<std::string, std::string> package_sources(
    const std::map<std::string, std::string>& build_sources) {
    const std::string root = package_root(build_sources);
    std::map<std::string, std::string> sources;
    for (const auto& [path, text] : build_sources) {
        if (path.starts_with(root)) {
            sources.emplace(path.substr(root.size()), text);
        }
    }
    return sources;
}

KernelPackage::KernelPackage(const std::map<std::string, std::string>& sources)
    : sources_(package_sources(sources)) {}

const PackageModule* KernelPackage::module(const std::string& name) {
    if (const auto known = modules_.find(name); known != modules_.end()) {
        return known->second.get();
    }
    const std::string base = path_of(name);
    const std::string init = base.empty() ? "__init__.py" : base + "/__init__.py";
    const bool is_package = sources_.contains(init);
    const auto source = sources_.find(is_package ? init : base + ".py");
    if (source == sources_.end()) {
        return nullptr;
    }
    auto parsed = py::parse_module(source->second, source->first);
    if (!parsed) {
        throw CannotCompile(parsed.error().where() + ": " + parsed.error().message);
    }
    auto made = std::make_unique<PackageModule>();
    made->name = name;
    made->is_package = is_package;
    made->file = std::make_unique<SourceFile>(source->first, source->second);
    made->tree = std::move(*parsed);
    PackageModule& result = *modules_.emplace(name, std::move(made)).first->second;
    bind(result, result.tree->body, Certainty::certain);
    mark_changed(result);
    return &result;
}

const Binding& KernelPackage::submodule(const std::string& name) {
    return submodules_.try_emplace(name, OwnModule{name}).first->second;
}

bool KernelPackage::has_module(const std::string& name) const {
    const std::string path = path_of(name);
    return sources_.contains(path.empty() ? "__init__.py" : path + "/__init__.py") ||
           (!path.empty() && sources_.contains(path + ".py"));
}

// Of several bindings the last one counts; of alternatives (the branches of if and try) none,
// unless the first is a module of this package, whose import cannot fail.
void KernelPackage::bind(PackageModule& module, const std::string& name, Binding binding,
                         Certainty certainty, const py::Node& at) {
    const auto known = module.names.find(name);
    if (known == module.names.end()) {
        module.names.emplace(name, std::move(binding));
        return;
    }
    const bool sure = std::holds_alternative<OwnName>(known->second) ||
                      std::holds_alternative<OwnModule>(known->second);
    if (certainty == Certainty::otherwise && sure) {
        return;
    }
    // A default value has kept the first of two constants.
    const bool changes = std::holds_alternative<const py::Expr*>(known->second) &&
                         std::holds_alternative<const py::Expr*>(binding);
    if (certainty == Certainty::certain && !changes) {
        known->second = std::move(binding);
        return;
    }
    known->second = UnclearName{fmt::format("{}:{}: what {} stands for depends on what is run",
                                            module.file->path(), at.span.line, name)};
}

void KernelPackage::bind_targets(PackageModule& module, const py::Assign& assign,
                                 Certainty certainty) {
    for (const py::ExprPtr& target : assign.targets) {
        if (const auto* name = py::as<py::Name>(target)) {
            bind(module, name->id, assign.value.get(), certainty, assign);
            continue;
        }
        // a, b = 1, 2
        const auto* names = py::as<py::Tuple>(target);
        const auto* values = py::as<py::Tuple>(assign.value);
        for (std::size_t i = 0; names != nullptr && i < names->elts.size(); ++i) {
            const auto* name = py::as<py::Name>(names->elts[i]);
            if (name != nullptr && values != nullptr && values->elts.size() == names->elts.size()) {
                bind(module, name->id, values->elts[i].get(), certainty, assign);
            } else if (name != nullptr) {
                bind(module, name->id,
                     UnclearName{fmt::format("{}:{}: {} is an element of a module constant",
                                             module.file->path(), assign.span.line, name->id)},
                     certainty, assign);
            }
        }
    }
}

void KernelPackage::bind(PackageModule& module, const py::Block& body, Certainty certainty) {
    for (const py::StmtPtr& statement : body) {
        if (const auto* function = py::as<py::FunctionDef>(statement)) {
            bind(module, function->name, function, certainty, *statement);
        } else if (const auto* type = py::as<py::ClassDef>(statement)) {
            bind(module, type->name, type, certainty, *statement);
        } else if (const auto* assign = py::as<py::Assign>(statement)) {
            bind_targets(module, *assign, certainty);
        } else if (const auto* annotated = py::as<py::AnnAssign>(statement)) {
            if (const auto* name = py::as<py::Name>(annotated->target); name && annotated->value) {
                bind(module, name->id, annotated->value.get(), certainty, *statement);
            }
        } else if (const auto* import = py::as<py::Import>(statement)) {
            for (auto& [name, binding] : imported(module, *import)) {
                bind(module, name, std::move(binding), certainty, *statement);
            }
        } else if (const auto* from = py::as<py::ImportFrom>(statement)) {
            for (auto& [name, binding] : imported(module, *from)) {
                if (name == "*") {
                    module.star_imports.push_back(std::get<OwnModule>(binding).name);
                } else {
                    bind(module, name, std::move(binding), certainty, *statement);
                }
            }
        } else {
            bind_alternatives(module, *statement, certainty);
        }
    }
}

void KernelPackage::bind_alternatives(PackageModule& module, const py::Stmt& statement,
                                      Certainty certainty) {
    const Certainty perhaps = certainty == Certainty::certain ? Certainty::perhaps : certainty;
    if (const auto* branch = py::as<py::If>(statement)) {
        bind(module, branch->body, perhaps);
        bind(module, branch->orelse, Certainty::otherwise);
    } else if (const auto* attempt = py::as<py::Try>(statement)) {
        bind(module, attempt->body, perhaps);
        bind(module, attempt->orelse, perhaps);
        for (const py::ExceptHandler& handler : attempt->handlers) {
            bind(module, handler.body, Certainty::otherwise);
        }
        bind(module, attempt->finalbody, certainty);
    } else if (const auto* with = py::as<py::With>(statement)) {
        bind(module, with->body, certainty);
    }
}

std::vector<std::pair<std::string, Binding>> KernelPackage::imported(
    const PackageModule&, const py::Import& import) const {
    std::vector<std::pair<std::string, Binding>> result;
    for (const py::Alias& alias : import.names) {
        // `import a.b` binds a; `import a.b as c` binds a.b
        const std::string first = alias.name.substr(0, alias.name.find('.'));
        result.emplace_back(alias.asname.value_or(first),
                            ForeignModule{alias.asname ? alias.name : first});
    }
    return result;
}

std::string KernelPackage::origin_of(const PackageModule& module,
                                     const py::ImportFrom& import) const {
    std::string base = module.is_package ? module.name : parent_of(module.name);
    for (int level = 1; level < import.level; ++level) {
        base = parent_of(base);
    }
    return dotted(base, import.module);
}

std::vector<std::pair<std::string, Binding>> KernelPackage::imported(
    const PackageModule& module, const py::ImportFrom& import) const {
    std::vector<std::pair<std::string, Binding>> result;
    const std::string from = import.level == 0 ? "" : origin_of(module, import);
    for (const py::Alias& alias : import.names) {
        const std::string bound = alias.asname.value_or(alias.name);
        if (alias.name == "*") {
            if (import.level > 0) {
                result.emplace_back("*", OwnModule{from});
            }
        } else if (import.level == 0) {
            result.emplace_back(bound, ForeignName{import.module, alias.name});
        } else {
            result.emplace_back(bound, OwnName{from, alias.name});
        }
    }
    return result;
}

Bindings KernelPackage::imports_in(const PackageModule& module, const py::FunctionDef& function) {
    Bindings names;
    for (const py::StmtPtr& statement : function.body) {
        py::walk(*statement, [&](const py::Node& node) {
            std::vector<std::pair<std::string, Binding>> found;
            if (const auto* import = py::as<py::Import>(node)) {
                found = imported(module, *import);
            } else if (const auto* from = py::as<py::ImportFrom>(node)) {
                found = imported(module, *from);
            }
            for (auto& [name, binding] : found) {
                if (!names.emplace(name, binding).second) {
                    names[name] = UnclearName{fmt::format("{}:{}: {} is imported twice in {}",
                                                          module.file->path(), node.span.line, name,
                                                          function.name)};
                }
            }
            return py::as<py::FunctionDef>(node) == nullptr;
        });
    }
    return names;
}

KernelPackage::Definition KernelPackage::find(const std::string& module, const std::string& name) {
    std::set<std::string> stars;
    return find(module, name, 0, stars);
}

KernelPackage::Definition KernelPackage::follow(const PackageModule& module,
                                                const Binding& binding) {
    const auto* elsewhere = std::get_if<OwnName>(&binding);
    return elsewhere ? find(elsewhere->module, elsewhere->name) : Definition{&module, &binding};
}

KernelPackage::Definition KernelPackage::find_definition(const std::string& module,
                                                         const std::string& name) {
    Definition found = find(module, name);
    for (int i = 0; i < max_reexports && found.module != nullptr; ++i) {
        const auto* value = std::get_if<const py::Expr*>(found.binding);
        const auto* other = value ? py::as<py::Name>(**value) : nullptr;
        const auto* member = value ? py::as<py::Attribute>(**value) : nullptr;
        const auto* owner = member ? py::as<py::Name>(member->value) : nullptr;
        if (other != nullptr) {
            found = find(found.module->name, other->id);
            continue;
        }
        const auto in = owner ? find(found.module->name, owner->id) : Definition{};
        const auto* own = in.module ? std::get_if<OwnModule>(in.binding) : nullptr;
        if (own == nullptr) {
            break;
        }
        found = find(own->name, member->attr);
    }
    return found;
}

bool KernelPackage::is_callable(const std::string& module, const std::string& name) {
    const Definition found = find_definition(module, name);
    if (found.module == nullptr) {
        return false;
    }
    const auto* value = std::get_if<const py::Expr*>(found.binding);
    return std::holds_alternative<const py::FunctionDef*>(*found.binding) ||
           (value != nullptr &&
            (py::as<py::Attribute>(**value) != nullptr || py::as<py::Call>(**value) != nullptr));
}

KernelPackage::Definition KernelPackage::find(const std::string& module, const std::string& name,
                                              int depth, std::set<std::string>& stars) {
    if (depth >= max_reexports) {
        throw CannotCompile(fmt::format("{}: the imports of {} lead in a circle",
                                        module.empty() ? "__init__.py" : path_of(module) + ".py",
                                        name));
    }
    const PackageModule* in = this->module(module);
    if (in == nullptr) {
        return {};
    }
    const auto found = in->names.find(name);
    const auto* elsewhere =
        found == in->names.end() ? nullptr : std::get_if<OwnName>(&found->second);
    const bool itself =
        elsewhere != nullptr && elsewhere->module == module && elsewhere->name == name;
    if (found == in->names.end() || itself) {
        // What a package binds comes before a module below it, as in Python.
        if (in->is_package && has_module(dotted(module, name))) {
            return {in, &submodule(dotted(module, name))};
        }
        for (const std::string& star : in->star_imports) {
            // Circles of star imports end unnoticed: they are common, and harmless in Python.
            if (depth + 1 < max_reexports && !name.starts_with("_") && stars.insert(star).second) {
                if (const Definition there = find(star, name, depth + 1, stars);
                    there.module != nullptr) {
                    return there;
                }
            }
        }
        return {};
    }
    if (elsewhere != nullptr) {
        return find(elsewhere->module, elsewhere->name, depth + 1, stars);
    }
    return {in, &found->second};
}

}  // namespace twinkle::runtime
