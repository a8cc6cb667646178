#include "kernel/layers.h"

#include "base/file.h"
#include "kernel/layer_reader.h"
#include "kernel/package_files.h"
#include "kernel/package_modules.h"
#include "kernel/usage.h"
#include "python/parser.h"
#include "twinkle/error.h"

#include <algorithm>

namespace twinkle::kernel {
namespace {

constexpr std::size_t kMaxFiles = 4096;
constexpr std::size_t kMaxPackageBytes = 64u << 20;

}  // namespace

std::string Problem::message() const {
    return file + ":" + std::to_string(line) + ": " + text;
}

const LayerSource* LayerList::find(std::string_view name) const {
    const auto found = std::find_if(layers.begin(), layers.end(),
                                    [&](const LayerSource& layer) { return layer.name == name; });
    return found == layers.end() ? nullptr : &*found;
}

PackageSources read_package(const std::filesystem::path& package_dir) {
    PackageSources out;
    std::size_t bytes = 0;
    for (const auto& file : package_files(package_dir)) {
        if (!file.ends_with(".py")) {
            continue;
        }
        auto text = base::read_file(package_dir / file, "Python source", python::kMaxSourceSize);
        bytes += text.size();
        out.emplace(file, std::move(text));
        if (out.size() > kMaxFiles || bytes > kMaxPackageBytes) {
            throw Error(ErrorCode::malformed,
                        {"a kernel's Python package is too large to be read",
                         base::display_path(package_dir),
                         "more than " + std::to_string(kMaxFiles) + " files or " +
                             std::to_string(kMaxPackageBytes >> 20) + " MiB of Python",
                         ""});
        }
    }
    return out;
}

LayerList read_layers(const PackageSources& package) {
    LayerList out;
    PackageModules modules(package);
    if (const auto* module = modules.module("layers")) {
        LayerReader reader(modules);
        for (const auto& name : modules.public_names(*module)) {
            const auto found = modules.find(*module, name);
            if (!found || found->node->kind != python::NodeKind::ClassDef) {
                continue;
            }
            if (auto layer = reader.read(name, *found)) {
                out.layers.push_back(std::move(*layer));
            }
        }
    }
    out.problems = modules.problems();
    return out;
}

namespace {

// What Python reads as an attribute of the function: `silu.can_torch_compile = True`.
void read_flags(const PackageModule& module, FunctionSource& function) {
    for (const auto& statement : module.tree->body) {
        const auto* assign = python::as<python::Assign>(statement);
        const auto* value = assign ? python::as<python::Constant>(assign->value) : nullptr;
        const bool* flag = value ? std::get_if<bool>(&value->value) : nullptr;
        if (flag == nullptr) {
            continue;
        }
        for (const auto& target : assign->targets) {
            const auto* attribute = python::as<python::Attribute>(target);
            const auto* owner = attribute ? python::as<python::Name>(attribute->value) : nullptr;
            if (owner != nullptr && owner->id == function.symbol) {
                if (attribute->attr == "has_backward") {
                    function.has_backward = *flag;
                } else if (attribute->attr == "can_torch_compile") {
                    function.can_torch_compile = *flag;
                }
            }
        }
    }
}

FunctionSource read_function(PackageModules& modules, const std::string& name,
                             const Definition& found, const python::FunctionDef& node) {
    FunctionSource function;
    function.name = name;
    function.file = found.module->file;
    function.symbol = node.name;
    function.line = static_cast<int>(node.span.line);
    function.parameters = read_parameters(*found.module, node.args);
    function.returns = source_text(*found.module, node.returns.get());
    for (const auto& decorator : node.decorator_list) {
        function.decorators.push_back(source_text(*found.module, decorator.get()));
    }
    function.usage = UsageReader(modules).read(*found.module, node, "");
    return function;
}

}  // namespace

FunctionList read_functions(const PackageSources& package) {
    FunctionList out;
    PackageModules modules(package);
    if (const auto* module = modules.module("")) {
        for (const auto& name : modules.public_names(*module)) {
            const auto found = modules.find(*module, name);
            if (const auto* node = found ? python::as<python::FunctionDef>(found->node) : nullptr) {
                out.functions.push_back(read_function(modules, name, *found, *node));
                read_flags(*found->module, out.functions.back());
            }
        }
    }
    out.problems = modules.problems();
    return out;
}

NamedSource read_named(const PackageSources& package, const std::string& file,
                       const std::string& name) {
    NamedSource out;
    PackageModules modules(package);
    if (const auto* module = modules.module_in(file)) {
        LayerReader reader(modules);
        const auto found = modules.find(*module, name);
        if (const auto* node = found ? python::as<python::FunctionDef>(found->node) : nullptr) {
            out.function = read_function(modules, name, *found, *node);
            out.function->can_torch_compile = true;
            read_flags(*found->module, *out.function);
        } else if (found) {
            out.layer = reader.read(name, *found);
        }
        const bool known = out.function || out.layer;
        for (const auto& offered :
             known ? std::vector<std::string>() : modules.public_names(*module)) {
            const auto other = modules.find(*module, offered);
            if (other && (python::as<python::FunctionDef>(other->node) != nullptr ||
                          reader.read(offered, *other))) {
                out.names.push_back(offered);
            }
        }
    }
    out.problems = modules.problems();
    return out;
}

}  // namespace twinkle::kernel
