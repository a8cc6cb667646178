#include "kernel/package_modules.h"

#include <set>

namespace twinkle::kernel {
namespace {

using namespace python;

// A chain of imports and aliases longer than this is a circle.
constexpr int kMaxChain = 32;

bool is_public(std::string_view name) {
    return !name.starts_with('_');
}

}  // namespace

PackageModules::Target PackageModules::resolve(const PackageModule& module, const std::string& name,
                                               int depth) {
    if (depth > kMaxChain) {
        return {};
    }
    const auto found = module.likely.find(name);
    if (found == module.likely.end()) {
        for (const auto* source : star_modules(module)) {
            if (is_public(name) && source->likely.contains(name)) {
                return resolve(*source, name, depth + 1);
            }
        }
        return {};
    }
    const Binding& binding = found->second;
    if (const auto* function = std::get_if<const FunctionDef*>(&binding)) {
        return {{&module, *function}, nullptr, {}};
    }
    if (const auto* type = std::get_if<const ClassDef*>(&binding)) {
        return {{&module, *type}, nullptr, {}};
    }
    if (const auto* value = std::get_if<const Expr*>(&binding)) {
        return resolve(module, **value, depth + 1);
    }
    if (const auto* foreign = std::get_if<ForeignModule>(&binding)) {
        return {{}, nullptr, foreign->name};
    }
    if (const auto* foreign = std::get_if<ForeignName>(&binding)) {
        return {{}, nullptr, foreign->module + "." + foreign->name};
    }
    const auto* own = std::get_if<OwnName>(&binding);
    return own ? imported(module, *own, depth) : Target{};
}

PackageModules::Target PackageModules::imported(const PackageModule& module, const OwnName& name,
                                                int depth) {
    const auto* source = this->module(name.module);
    const std::string below = dotted(name.module, name.name);
    const bool bound = source && source != &module && source->likely.contains(name.name);
    if (!bound && has_module(below)) {
        return {{}, this->module(below), {}};
    }
    if (source) {
        return resolve(*source, name.name, depth + 1);
    }
    if (name.module == "_ops" || name.module.ends_with("._ops")) {
        return {{}, nullptr, dotted(std::string(own_operators), name.name)};
    }
    return {{}, nullptr, name.name == "_ops" ? std::string(own_operators) : ""};
}

PackageModules::Target PackageModules::resolve(const PackageModule& module, const Expr& expression,
                                               int depth) {
    if (depth > kMaxChain) {
        return {};
    }
    if (const auto* name = as<Name>(expression)) {
        return resolve(module, name->id, depth + 1);
    }
    const auto* attribute = as<Attribute>(expression);
    if (!attribute) {
        return {};
    }
    Target base = resolve(module, *attribute->value, depth + 1);
    if (base.module) {
        return resolve(*base.module, attribute->attr, depth + 1);
    }
    if (!base.external.empty()) {
        return {{}, nullptr, base.external + "." + attribute->attr};
    }
    return {};
}

std::optional<Definition> PackageModules::find(const PackageModule& module,
                                               const std::string& name) {
    const Target target = resolve(module, name, 0);
    return target.definition.node ? std::optional(target.definition) : std::nullopt;
}

std::optional<Definition> PackageModules::find(const PackageModule& module,
                                               const Expr& expression) {
    const Target target = resolve(module, expression, 0);
    return target.definition.node ? std::optional(target.definition) : std::nullopt;
}

std::string PackageModules::external_name(const PackageModule& module, const Expr& expression) {
    return resolve(module, expression, 0).external;
}

std::string PackageModules::own_namespace() {
    const PackageModule* written = module("_ops");
    const std::string name = written ? resolve(*written, "ops", 0).external : std::string();
    constexpr std::string_view prefix = "torch.ops.";
    return name.starts_with(prefix) ? name.substr(prefix.size()) : std::string();
}

std::vector<std::string> PackageModules::public_names(const PackageModule& module) {
    std::set<std::string> names;
    const auto add = [&](const PackageModule& source) {
        for (const auto& [name, binding] : source.likely) {
            if (is_public(name)) names.insert(name);
        }
    };
    add(module);
    for (const auto* source : star_modules(module)) add(*source);
    return {names.begin(), names.end()};
}

const std::vector<const PackageModule*>& PackageModules::star_modules(const PackageModule& module) {
    const auto [known, first] = star_modules_.try_emplace(&module);
    std::vector<const PackageModule*>& found = known->second;
    std::set<const PackageModule*> seen{&module};
    std::vector<std::string> open = first ? module.star_imports : std::vector<std::string>{};
    for (std::size_t i = 0; i < open.size(); ++i) {
        const auto* source = this->module(open[i]);
        if (source && seen.insert(source).second) {
            found.push_back(source);
            open.insert(open.end(), source->star_imports.begin(), source->star_imports.end());
        }
    }
    return found;
}

}  // namespace twinkle::kernel
