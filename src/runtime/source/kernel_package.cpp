#include "runtime/source/kernel_package.h"

#include "base/text.h"
#include "python/parser.h"

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
    for (const py::StmtPtr& statement : result.tree->body) {
        bind(result, *statement);
    }
    return &result;
}

void KernelPackage::bind(PackageModule& module, const py::Stmt& statement) {
    if (const auto* function = py::as<py::FunctionDef>(statement)) {
        module.names[function->name] = function;
    } else if (const auto* type = py::as<py::ClassDef>(statement)) {
        module.names[type->name] = type;
    } else if (const auto* assign = py::as<py::Assign>(statement)) {
        for (const py::ExprPtr& target : assign->targets) {
            if (const auto* name = py::as<py::Name>(target)) {
                module.names[name->id] = assign->value.get();
            }
        }
    } else if (const auto* annotated = py::as<py::AnnAssign>(statement)) {
        if (const auto* name = py::as<py::Name>(annotated->target); name && annotated->value) {
            module.names[name->id] = annotated->value.get();
        }
    } else if (const auto* import = py::as<py::Import>(statement)) {
        for (const py::Alias& alias : import->names) {
            // `import a.b` binds a; `import a.b as c` binds a.b
            const std::string first = alias.name.substr(0, alias.name.find('.'));
            module.names[alias.asname.value_or(first)] =
                ForeignModule{alias.asname ? alias.name : first};
        }
    } else if (const auto* from = py::as<py::ImportFrom>(statement)) {
        bind_import(module, *from);
    }
}

void KernelPackage::bind_import(PackageModule& module, const py::ImportFrom& import) {
    std::string base = module.is_package ? module.name : parent_of(module.name);
    for (int level = 1; level < import.level; ++level) {
        base = parent_of(base);
    }
    for (const py::Alias& alias : import.names) {
        const std::string bound = alias.asname.value_or(alias.name);
        if (import.level == 0) {
            module.names[bound] = ForeignName{import.module, alias.name};
            continue;
        }
        const std::string from = dotted(base, import.module);
        const std::string submodule = path_of(dotted(from, alias.name));
        const bool is_module =
            sources_.contains(submodule + ".py") || sources_.contains(submodule + "/__init__.py");
        if (is_module) {
            module.names[bound] = OwnModule{dotted(from, alias.name)};
        } else {
            module.names[bound] = OwnName{from, alias.name};
        }
    }
}

KernelPackage::Definition KernelPackage::find(const std::string& module, const std::string& name) {
    return follow(module, name, 0);
}

KernelPackage::Definition KernelPackage::follow(const std::string& module, const std::string& name,
                                                int depth) {
    const PackageModule* in = depth < max_reexports ? this->module(module) : nullptr;
    if (in == nullptr) {
        return {};
    }
    const auto found = in->names.find(name);
    if (found == in->names.end()) {
        return {};
    }
    if (const auto* elsewhere = std::get_if<OwnName>(&found->second)) {
        return follow(elsewhere->module, elsewhere->name, depth + 1);
    }
    return {in, &found->second};
}

}  // namespace twinkle::runtime
