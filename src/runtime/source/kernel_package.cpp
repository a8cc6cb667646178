#include "runtime/source/kernel_package.h"

#include "runtime/graph/format.h"

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
    : Package(package_sources(sources)) {}

const SourceFile& KernelPackage::file(const PackageModule& module) {
    return files_.try_emplace(&module, module.file, std::string(module.source)).first->second;
}

void KernelPackage::cannot_parse(const py::SyntaxError& error) {
    throw CannotCompile(error.where() + ": " + error.message);
}

void refuse(const PackageModule& module, const py::Node& node, const std::string& construct) {
    throw CannotCompile(fmt::format("{}:{}: {}", module.file, node.span.line, construct));
}

const Binding& KernelPackage::submodule(const std::string& name) {
    return submodules_.try_emplace(name, OwnModule{name}).first->second;
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
        const PackageModule* at = this->module(module);
        throw CannotCompile(fmt::format("{}: the imports of {} lead in a circle",
                                        at != nullptr ? at->file : module, name));
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
