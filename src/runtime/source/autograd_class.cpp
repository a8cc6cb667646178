#include "runtime/source/autograd_class.h"

#include <algorithm>
#include <array>

namespace twinkle::runtime {

namespace py = twinkle::python;

namespace {

constexpr int max_base_classes = 8;

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

MethodSource method_of(KernelPackage& package, const ClassSource& type, const std::string& name,
                       int depth) {
    for (const py::StmtPtr& statement : type.type->body) {
        const auto* def = py::as<py::FunctionDef>(statement);
        if (def != nullptr && def->name == name) {
            return {type.module, def};
        }
    }
    if (depth < max_base_classes) {
        for (const ClassSource& base : own_bases(package, type)) {
            if (const auto found = method_of(package, base, name, depth + 1); found.def) {
                return found;
            }
        }
    }
    return {};
}

}  // namespace

bool is_autograd_function(KernelPackage& package, const ClassSource& type) {
    return is_function_class(package, type, 0);
}

MethodSource find_method(KernelPackage& package, const ClassSource& type, const std::string& name) {
    return method_of(package, type, name, 0);
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
            refuse(*method.module, *method.def,
                   "the decorator " + (last.empty() ? "" : last + " ") + "of " + method.def->name);
        }
    }
}

}  // namespace twinkle::runtime
