#include "kernel/layer_reader.h"

#include "kernel/precision.h"
#include "kernel/usage.h"
#include "python/walk.h"

#include <algorithm>
#include <array>
#include <set>

namespace twinkle::kernel {
namespace {

using namespace python;

constexpr std::size_t kMaxClasses = 64;
constexpr const char* members_of_a_layer =
    "; a layer has no members besides forward, prepare, precision, extra_repr and its two flags";

bool is_nn_module(std::string_view name) {
    static constexpr std::array<std::string_view, 3> names{
        "torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module"};
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_autograd_function(std::string_view name) {
    return name == "torch.autograd.Function" || name == "torch.autograd.function.Function";
}

void add_problem(LayerSource& layer, const PackageModule& module, const Node& node,
                 std::string text) {
    layer.problems.push_back({module.file, static_cast<int>(node.span.line), std::move(text)});
}

// "experts.router" for `self.experts.router`; empty if the expression is no attribute of self.
std::string host_path(const Expr& expression, std::string_view self) {
    std::vector<std::string_view> parts;
    const Expr* at = &expression;
    while (const auto* attribute = as<Attribute>(*at)) {
        parts.push_back(attribute->attr);
        at = attribute->value.get();
    }
    const auto* root = as<Name>(*at);
    if (!root || root->id != self) {
        return {};
    }
    std::string path;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (!path.empty()) path += '.';
        path += *part;
    }
    return path;
}

// Methods that only say what a module is, which nobody calls to compute.
bool is_description(std::string_view method) {
    return method == "extra_repr" || method == "__repr__";
}

bool is_static_or_class_method(const FunctionDef& function) {
    return std::any_of(function.decorator_list.begin(), function.decorator_list.end(),
                       [](const ExprPtr& decorator) {
                           const auto* name = as<Name>(decorator);
                           return name && (name->id == "staticmethod" || name->id == "classmethod");
                       });
}

void add_parameter(const PackageModule& module, const Arg& arg, ParameterKind kind,
                   const Expr* default_value, std::vector<Parameter>& out) {
    Parameter parameter;
    parameter.name = arg.arg;
    parameter.kind = kind;
    parameter.has_default = default_value != nullptr;
    parameter.annotation = source_text(module, arg.annotation.get());
    parameter.default_text = source_text(module, default_value);
    out.push_back(std::move(parameter));
}

}  // namespace

std::string source_text(const PackageModule& module, const Expr* expression) {
    std::string out;
    if (!expression) {
        return out;
    }
    const Span& span = expression->span;
    for (const char c : module.source.substr(span.begin, span.end - span.begin)) {
        const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
        if (!space) {
            out += c;
        } else if (!out.empty() && out.back() != ' ') {
            out += ' ';
        }
    }
    return out;
}

std::vector<Parameter> read_parameters(const PackageModule& module, const Arguments& arguments) {
    std::vector<Parameter> out;
    const std::size_t positional = arguments.posonlyargs.size() + arguments.args.size();
    std::size_t index = 0;
    const auto add_positional = [&](const std::vector<Arg>& args, ParameterKind kind) {
        for (const auto& arg : args) {
            const std::size_t from_end = positional - index++;
            const std::size_t defaults = arguments.defaults.size();
            const Expr* value =
                from_end <= defaults ? arguments.defaults[defaults - from_end].get() : nullptr;
            add_parameter(module, arg, kind, value, out);
        }
    };
    add_positional(arguments.posonlyargs, ParameterKind::positional_only);
    add_positional(arguments.args, ParameterKind::positional_or_keyword);
    if (arguments.vararg) {
        add_parameter(module, *arguments.vararg, ParameterKind::var_positional, nullptr, out);
    }
    for (std::size_t i = 0; i < arguments.kwonlyargs.size(); ++i) {
        add_parameter(module, arguments.kwonlyargs[i], ParameterKind::keyword_only,
                      arguments.kw_defaults[i].get(), out);
    }
    if (arguments.kwarg) {
        add_parameter(module, *arguments.kwarg, ParameterKind::var_keyword, nullptr, out);
    }
    return out;
}

std::optional<LayerSource> LayerReader::read(const std::string& name,
                                             const Definition& definition) {
    const Lineage found = lineage(definition);
    has_forward_ = has_flag_backward_ = has_flag_compile_ = has_precision_ = false;
    LayerSource layer;
    layer.name = name;
    layer.file = definition.module->file;
    layer.line = static_cast<int>(definition.node->span.line);
    layer.bases = found.bases;
    for (const auto& cls : found.classes) {
        read_members(cls, layer);
    }
    if (!found.is_module && (found.is_autograd_function || !has_forward_)) {
        return std::nullopt;
    }
    if (!found.is_module) {
        add_problem(layer, *definition.module, *definition.node,
                    name + " does not subclass torch.nn.Module");
    }
    if (!has_forward_) {
        add_problem(layer, *definition.module, *definition.node, name + " defines no forward");
    }
    return layer;
}

LayerReader::Lineage LayerReader::lineage(const Definition& definition) {
    Lineage out;
    std::vector<Definition> open{definition};
    std::set<const Stmt*> seen;
    for (std::size_t i = 0; i < open.size() && out.classes.size() < kMaxClasses; ++i) {
        const auto* cls = as<ClassDef>(open[i].node);
        if (!cls || !seen.insert(open[i].node).second) {
            continue;
        }
        const PackageModule& module = *open[i].module;
        out.classes.push_back(open[i]);
        for (const auto& base : cls->bases) {
            const auto parent = modules_.find(module, *base);
            const auto external = modules_.external_name(module, *base);
            if (i == 0) {
                out.bases.push_back(!external.empty() ? external : source_text(module, base.get()));
            }
            if (parent) {
                open.push_back(*parent);
                continue;
            }
            out.is_module = out.is_module || is_nn_module(external);
            out.is_autograd_function = out.is_autograd_function || is_autograd_function(external);
        }
    }
    return out;
}

void LayerReader::read_members(const Definition& definition, LayerSource& layer) {
    const PackageModule& module = *definition.module;
    for (const auto& statement : as<ClassDef>(definition.node)->body) {
        if (const auto* function = as<FunctionDef>(statement)) {
            if (function->name == "forward") {
                if (!has_forward_) read_forward(module, *function, layer);
                has_forward_ = true;
            } else if (function->name == "prepare") {
                layer.prepares = true;
            } else if (!is_description(function->name)) {
                add_problem(layer, module, *function,
                            "defines " + function->name + members_of_a_layer);
            }
        } else if (const auto* assign = as<Assign>(statement)) {
            for (const auto& target : assign->targets) {
                read_assignment(definition, *target, assign->value.get(), layer);
            }
        } else if (const auto* annotated = as<AnnAssign>(statement)) {
            // Without a value it only describes what the host has.
            if (annotated->value) {
                read_assignment(definition, *annotated->target, annotated->value.get(), layer);
            } else {
                read_declaration(module, *annotated, layer);
            }
        } else if (const auto* expression = as<ExprStmt>(statement);
                   !as<Pass>(statement) && !(expression && as<Constant>(expression->value))) {
            add_problem(layer, module, *statement,
                        "has a statement in its body that cannot be read without running it");
        }
    }
}

void LayerReader::read_declaration(const PackageModule& module, const AnnAssign& declared,
                                   LayerSource& layer) {
    const auto* name = as<Name>(declared.target);
    const std::string type = source_text(module, declared.annotation.get());
    if (name && (type.find("Tensor") != std::string::npos || type.starts_with("nn.") ||
                 type.starts_with("torch.nn."))) {
        layer.tensors.insert(name->id);
    }
}

void LayerReader::read_assignment(const Definition& definition, const Expr& target,
                                  const Expr* value, LayerSource& layer) {
    const auto* name = as<Name>(target);
    const bool backward = name && name->id == "has_backward";
    const bool compile = name && name->id == "can_torch_compile";
    if (name && name->id == "precision") {
        return read_precision(definition, target, value, layer);
    }
    if (!backward && !compile) {
        add_problem(layer, *definition.module, target,
                    "defines " + source_text(*definition.module, &target) + members_of_a_layer);
        return;
    }
    bool& known = backward ? has_flag_backward_ : has_flag_compile_;
    const auto* constant = as<Constant>(value);
    const auto* flag = constant ? std::get_if<bool>(&constant->value) : nullptr;
    if (!flag) {
        add_problem(layer, *definition.module, target,
                    name->id + " must be True or False, so that it is known without running it");
    } else if (!known) {
        (backward ? layer.has_backward : layer.can_torch_compile) = *flag;
    }
    known = true;
}

void LayerReader::read_precision(const Definition& definition, const Expr& target,
                                 const Expr* value, LayerSource& layer) {
    const auto* constant = as<Constant>(value);
    const auto* text = constant ? constant->string() : nullptr;
    if (!text || !is_precision(*text)) {
        add_problem(layer, *definition.module, target,
                    "precision must be a name such as \"int8\", of up to 16 small letters, digits "
                    "and _");
    } else if (!has_precision_) {
        layer.precision = *text;
    }
    has_precision_ = true;
}

void LayerReader::read_forward(const PackageModule& module, const FunctionDef& forward,
                               LayerSource& layer) {
    layer.parameters = read_parameters(module, forward.args);
    layer.returns = source_text(module, forward.returns.get());
    const bool has_self = !layer.parameters.empty() &&
                          layer.parameters[0].kind <= ParameterKind::positional_or_keyword;
    if (is_static_or_class_method(forward) || !has_self) {
        add_problem(layer, module, forward, "forward must be a method with self");
        return;
    }
    const std::string self = layer.parameters[0].name;
    layer.parameters.erase(layer.parameters.begin());

    std::set<std::string> reads;
    std::set<std::string> writes;
    const auto look = [&](const Node& node) {
        if (const auto* call = as<Call>(node)) {
            if (auto path = host_path(*call->func, self); !path.empty()) {
                layer.host_calls.push_back(
                    {std::move(path), static_cast<int>(call->args.size() + call->keywords.size()),
                     static_cast<int>(call->span.line)});
            }
        } else if (const auto* attribute = as<Attribute>(node)) {
            const auto* root = as<Name>(attribute->value);
            if (root && root->id == self) {
                (attribute->ctx == ExprContext::Load ? reads : writes).insert(attribute->attr);
            }
        }
        return true;
    };
    for (const auto& statement : forward.body) walk(*statement, look);
    layer.usage = UsageReader(modules_).read(module, forward, self);
    layer.host_attributes.assign(reads.begin(), reads.end());
    layer.host_writes.assign(writes.begin(), writes.end());
}

}  // namespace twinkle::kernel
