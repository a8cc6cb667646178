#include "kernel/package_modules.h"

#include "python/parser.h"

#include <algorithm>
#include <set>

namespace twinkle::kernel {
namespace {

using namespace python;

// A chain of imports and aliases longer than this is a circle.
constexpr int kMaxChain = 32;

Binding definition(const Stmt& statement) {
    Binding binding;
    binding.definition = &statement;
    return binding;
}

bool is_public(std::string_view name) {
    return !name.starts_with('_');
}

}  // namespace

const PackageModule* PackageModules::module(const std::string& file) {
    const auto known = modules_.find(file);
    if (known != modules_.end()) {
        return known->second.get();
    }
    auto& slot = modules_[file];
    const auto source = package_.find(file);
    if (source == package_.end()) {
        return nullptr;
    }
    auto parsed = parse_module(source->second, file);
    if (!parsed) {
        problems_.push_back({file, static_cast<int>(parsed.error().line), parsed.error().message});
        return nullptr;
    }
    slot = std::make_unique<PackageModule>();
    slot->file = file;
    slot->source = source->second;
    slot->tree = std::move(*parsed);
    PackageModule& added = *slot;
    bind(added, added.tree->body, false);
    return &added;
}

// Of alternatives (the branches of if and try) the first that binds a name counts: it is what the
// package means to use where it can.
void PackageModules::bind(PackageModule& module, const Block& block, bool weak) {
    for (const auto& statement : block) {
        if (const auto* cls = as<ClassDef>(statement)) {
            bind_one(module, cls->name, definition(*statement), weak);
        } else if (const auto* function = as<FunctionDef>(statement)) {
            bind_one(module, function->name, definition(*statement), weak);
        } else if (const auto* assign = as<Assign>(statement)) {
            for (const auto& target : assign->targets) {
                if (const auto* name = as<Name>(target)) {
                    Binding binding;
                    binding.value = assign->value.get();
                    bind_one(module, name->id, std::move(binding), weak);
                }
            }
        } else if (const auto* import = as<Import>(statement)) {
            bind_import(module, *import, weak);
        } else if (const auto* from = as<ImportFrom>(statement)) {
            bind_import_from(module, *from, weak);
        } else if (const auto* branch = as<If>(statement)) {
            bind(module, branch->body, true);
            bind(module, branch->orelse, true);
        } else if (const auto* attempt = as<Try>(statement)) {
            bind(module, attempt->body, weak);
            bind(module, attempt->orelse, weak);
            for (const auto& handler : attempt->handlers) bind(module, handler.body, true);
            bind(module, attempt->finalbody, weak);
        } else if (const auto* with = as<With>(statement)) {
            bind(module, with->body, weak);
        }
    }
}

void PackageModules::bind_one(PackageModule& module, std::string name, Binding binding, bool weak) {
    if (weak) {
        module.bindings.try_emplace(std::move(name), std::move(binding));
    } else {
        module.bindings.insert_or_assign(std::move(name), std::move(binding));
    }
}

void PackageModules::bind_import(PackageModule& module, const Import& node, bool weak) {
    for (const auto& alias : node.names) {
        Binding binding;
        binding.external = alias.asname ? alias.name : alias.name.substr(0, alias.name.find('.'));
        bind_one(module, alias.asname.value_or(binding.external), binding, weak);
    }
}

void PackageModules::bind_import_from(PackageModule& module, const ImportFrom& node, bool weak) {
    const auto source = node.level > 0 ? file_of(module.file, node.level, node.module)
                                       : std::optional<std::string>{};
    // _ops is written by the build of a kernel; sources are read without it.
    // Without an __init__.py, `from . import norm` still names a module.
    const bool in_folder = node.level > 0 && !source && node.module.empty();
    const bool missing = node.level > 0 && !source && !in_folder && node.module != "_ops";
    if (missing && !weak) {
        problems_.push_back({module.file, static_cast<int>(node.span.line),
                             "imports from a module that the package does not have: " +
                                 std::string(static_cast<std::size_t>(node.level), '.') +
                                 node.module});
    }
    for (const auto& alias : node.names) {
        Binding binding;
        if (node.level == 0) {
            binding.external = node.module + "." + alias.name;
        } else if (!source && node.module == "_ops") {
            binding.external = std::string(own_operators) + "." + alias.name;
        } else if (!source && node.module.empty() && alias.name == "_ops") {
            binding.external = own_operators;
        } else if (source) {
            binding.module_file = *source;
            binding.symbol = alias.name;
            if (source->ends_with("__init__.py")) {
                binding.submodule_file = file_of(*source, 1, alias.name).value_or("");
            }
        }
        if (in_folder) {
            binding.submodule_file = file_of(module.file, node.level, alias.name).value_or("");
        }
        if (alias.name == "*") {
            if (source) module.star_imports.push_back(*source);
            continue;
        }
        bind_one(module, alias.asname.value_or(alias.name), binding, weak);
    }
}

// The file of a module that is imported relative to the file `from`.
std::optional<std::string> PackageModules::file_of(const std::string& from, int level,
                                                   std::string_view name) {
    const auto up = [](std::string_view path) {
        const auto slash = path.rfind('/');
        return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
    };
    std::string_view folder = up(from);
    for (int i = 1; i < level; ++i) {
        if (folder.empty()) return std::nullopt;
        folder = up(folder);
    }
    std::string path(folder);
    if (!name.empty()) {
        if (!path.empty()) path += '/';
        path += name;
        std::replace(path.begin() + static_cast<std::ptrdiff_t>(path.size() - name.size()),
                     path.end(), '.', '/');
        if (package_.contains(path + ".py")) return path + ".py";
    }
    const auto init = path.empty() ? std::string("__init__.py") : path + "/__init__.py";
    return package_.contains(init) ? std::optional(init) : std::nullopt;
}

PackageModules::Target PackageModules::resolve(const PackageModule& module, const std::string& name,
                                               int depth) {
    if (depth > kMaxChain) {
        return {};
    }
    const auto found = module.bindings.find(name);
    if (found == module.bindings.end()) {
        for (const auto* source : star_modules(module)) {
            if (is_public(name) && source->bindings.contains(name)) {
                return resolve(*source, name, depth + 1);
            }
        }
        return {};
    }
    const Binding& binding = found->second;
    if (binding.definition) {
        return {{&module, binding.definition}, nullptr, {}};
    }
    if (binding.value) {
        return resolve(module, *binding.value, depth + 1);
    }
    const auto* source = binding.module_file.empty() ? nullptr : this->module(binding.module_file);
    const bool bound = source && source != &module && source->bindings.contains(binding.symbol);
    if (!binding.submodule_file.empty() && !bound) {
        return {{}, this->module(binding.submodule_file), {}};
    }
    if (binding.module_file.empty()) {
        return {{}, nullptr, binding.external};
    }
    if (!source) {
        return {};
    }
    return resolve(*source, binding.symbol, depth + 1);
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
    const PackageModule* written = module("_ops.py");
    const std::string name = written ? resolve(*written, "ops", 0).external : std::string();
    constexpr std::string_view prefix = "torch.ops.";
    return name.starts_with(prefix) ? name.substr(prefix.size()) : std::string();
}

std::vector<std::string> PackageModules::public_names(const PackageModule& module) {
    std::set<std::string> names;
    const auto add = [&](const PackageModule& source) {
        for (const auto& [name, binding] : source.bindings) {
            if (is_public(name)) names.insert(name);
        }
    };
    add(module);
    for (const auto* source : star_modules(module)) add(*source);
    return {names.begin(), names.end()};
}

const std::vector<const PackageModule*>& PackageModules::star_modules(const PackageModule& module) {
    if (!module.star_modules) {
        std::vector<const PackageModule*> found;
        std::set<std::string> seen{module.file};
        std::vector<std::string> open = module.star_imports;
        for (std::size_t i = 0; i < open.size(); ++i) {
            const auto* source = seen.insert(open[i]).second ? this->module(open[i]) : nullptr;
            if (!source) continue;
            found.push_back(source);
            open.insert(open.end(), source->star_imports.begin(), source->star_imports.end());
        }
        module.star_modules = std::move(found);
    }
    return *module.star_modules;
}

}  // namespace twinkle::kernel
