#include "kernel/usage.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "kernel/constructs.h"
#include "python/walk.h"

namespace twinkle::kernel {
namespace {

using namespace python;

constexpr std::size_t deepest_call = 32;
constexpr std::size_t most_reasons = 64;

bool begins_with(std::string_view name, std::string_view prefix) {
    return name.starts_with(prefix) && (name.size() == prefix.size() || name[prefix.size()] == '.');
}

// "a.b.c" for nested attributes of a name; empty for anything else.
const Name* root_of(const Expr& expression) {
    const Expr* at = &expression;
    while (const auto* attribute = as<Attribute>(*at)) {
        at = attribute->value.get();
    }
    return as<Name>(*at);
}

void add_bound_names(const Node& node, std::set<std::string>& names) {
    if (const auto* name = as<Name>(node); name && name->ctx != ExprContext::Load) {
        names.insert(name->id);
    } else if (const auto* function = as<FunctionDef>(node)) {
        names.insert(function->name);
    } else if (const auto* cls = as<ClassDef>(node)) {
        names.insert(cls->name);
    } else if (const auto* import = as<Import>(node)) {
        for (const Alias& alias : import->names) {
            names.insert(alias.asname.value_or(alias.name.substr(0, alias.name.find('.'))));
        }
    } else if (const auto* from = as<ImportFrom>(node)) {
        for (const Alias& alias : from->names) names.insert(alias.asname.value_or(alias.name));
    }
}

std::set<std::string> local_names(const FunctionDef& function) {
    std::set<std::string> names;
    const Arguments& arguments = function.args;
    for (const auto* list : {&arguments.posonlyargs, &arguments.args, &arguments.kwonlyargs}) {
        for (const Arg& arg : *list) names.insert(arg.arg);
    }
    if (arguments.vararg) names.insert(arguments.vararg->arg);
    if (arguments.kwarg) names.insert(arguments.kwarg->arg);
    for (const StmtPtr& statement : function.body) {
        walk(*statement, [&](const Node& node) {
            add_bound_names(node, names);
            return true;
        });
    }
    return names;
}

// What the names of TorchScript's own frontend reach of torch (runtime/source/torch_names.cpp).
bool is_torch_name_with_counterpart(std::string_view name) {
    static constexpr std::array<std::string_view, 5> modules{
        "torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.ops"};
    static constexpr std::array<std::string_view, 3> facts{
        "torch.version.cuda", "torch.cuda.device_count", "torch.cuda.is_available"};
    if (std::find(facts.begin(), facts.end(), name) != facts.end()) return true;
    const auto dot = name.rfind('.');
    const std::string_view module = name.substr(0, dot);
    return std::find(modules.begin(), modules.end(), module) != modules.end() ||
           begins_with(name, "torch.ops");
}

class FunctionWalker {
public:
    FunctionWalker(PackageModules& modules, Usage& usage) : modules_(modules), usage_(usage) {}

    // `certain`: whatever the types, it is compiled.
    void function(const PackageModule& module, const FunctionDef& node, const std::string& self,
                  bool certain) {
        if (stack_.size() >= deepest_call ||
            std::find(stack_.begin(), stack_.end(), &node) != stack_.end()) {
            add(module, node, ReasonKind::construct,
                "the function " + node.name + " calls itself or nests too deeply", certain);
            return;
        }
        // Once is enough, except to find that what was doubtful is certain.
        if (seen_.contains({&node, true}) || !seen_.insert({&node, certain}).second) {
            return;
        }
        stack_.push_back(&node);
        const Frame before =
            std::exchange(frame_, Frame{&module, self, local_names(node), certain,
                                        node.args.kwarg ? node.args.kwarg->arg : ""});
        if (const auto why = refused_parameters(node.args, node.name)) {
            // Nothing, where the site passes nothing for them.
            add(module, node, ReasonKind::arguments, *why, false);
        }
        block(node.body, certain);
        frame_ = before;
        stack_.pop_back();
    }

private:
    struct Frame {
        const PackageModule* module = nullptr;
        std::string self;
        std::set<std::string> locals;
        bool certain = true;   // that the function itself is compiled
        std::string keywords;  // its **kwargs
    };

    void add(const PackageModule& module, const Node& node, ReasonKind kind, std::string text,
             bool certain) {
        const int line = static_cast<int>(node.span.line);
        for (Reason& known : usage_.reasons) {
            if (known.file == module.file && known.line == line && known.text == text) {
                known.certain = known.certain || certain;
                return;
            }
        }
        if (usage_.reasons.size() < most_reasons) {
            usage_.reasons.push_back({kind, module.file, line, std::move(text), certain});
        }
    }
    void add(const Node& node, ReasonKind kind, std::string text, bool certain) {
        add(*frame_.module, node, kind, std::move(text), certain);
    }

    void block(const Block& body, bool certain) {
        for (const StmtPtr& statement : body) visit(*statement, certain);
    }

    void children(const Node& node, bool certain) {
        for_each_child(node, [&](const Node& child) { visit(child, certain); });
    }

    // `certain`: that the names in it are looked up. Syntax is lowered even where they are not.
    void visit(const Node& node, bool certain) {
        if (const auto why = refused_construct(node)) {
            add(node, ReasonKind::construct, *why, frame_.certain);
            if (!as<Call>(node)) return;
        }
        if (!in_message_ && is_percent_format(node)) {
            add(node, ReasonKind::construct, "a % format outside of a message", frame_.certain);
        }
        switch (node.kind) {
            case NodeKind::If: {
                const auto& branch = *as<If>(node);
                visit(*branch.test, certain);
                block(branch.body, false);
                block(branch.orelse, false);
                return;
            }
            case NodeKind::IfExp: {
                const auto& branch = *as<IfExp>(node);
                visit(*branch.test, certain);
                visit(*branch.body, false);
                visit(*branch.orelse, false);
                return;
            }
            case NodeKind::BoolOp: {
                const auto& operation = *as<BoolOp>(node);
                for (std::size_t i = 0; i < operation.values.size(); ++i) {
                    visit(*operation.values[i], certain && i == 0);
                }
                return;
            }
            case NodeKind::With: with(*as<With>(node), certain); return;
            case NodeKind::Import:
            case NodeKind::ImportFrom: return;
            case NodeKind::AnnAssign: {
                // Types stand for themselves.
                const auto& assign = *as<AnnAssign>(node);
                if (assign.value) visit(*assign.value, certain);
                return;
            }
            case NodeKind::FormattedValue: visit(*as<FormattedValue>(node)->value, certain); return;
            case NodeKind::Raise: {
                const bool was_message = std::exchange(in_message_, true);
                visit(*as<Raise>(node)->exc, false);
                in_message_ = was_message;
                return;
            }
            case NodeKind::Assert: visit(*as<Assert>(node)->test, certain); return;
            case NodeKind::Call: call(*as<Call>(node), certain); return;
            case NodeKind::Name:
            case NodeKind::Attribute: name(*static_cast<const Expr*>(&node), certain); return;
            default: children(node, certain);
        }
    }

    void with(const With& node, bool certain) {
        for (const WithItem& item : node.items) {
            const auto* call = as<Call>(item.context_expr);
            const std::string name =
                call ? modules_.external_name(*frame_.module, *call->func) : std::string();
            if (item.optional_vars || context_of(name) == Context::unknown) {
                add(node, ReasonKind::construct,
                    "With has no counterpart in TorchScript, except with torch.no_grad() and "
                    "enable_grad()",
                    frame_.certain);
            }
        }
        block(node.body, certain);
    }

    void call(const Call& node, bool certain) {
        const Expr* called = node.func.get();
        // kernel[grid](…)
        const auto* launch = as<Subscript>(*called);
        if (launch) {
            called = launch->value.get();
            visit(*launch->slice, certain);
        }
        callee(node, *called, launch != nullptr, certain);
        // isinstance(x, torch.Tensor) names types.
        const auto* plain = as<Name>(*called);
        const bool types = plain && plain->id == "isinstance" && node.args.size() == 2;
        const bool was_message =
            std::exchange(in_message_, in_message_ || (plain && plain->id == "print"));
        for (std::size_t i = 0; i < node.args.size(); ++i) {
            if (!types || i == 0) visit(*node.args[i], certain);
        }
        for (const Keyword& keyword : node.keywords) {
            const auto* rest = keyword.arg.empty() ? as<Name>(keyword.value) : nullptr;
            if (keyword.arg.empty() && !(rest && rest->id == frame_.keywords)) {
                add(keyword, ReasonKind::construct, "a ** argument", frame_.certain);
            }
            visit(*keyword.value, certain);
        }
        in_message_ = was_message;
    }

    void callee(const Call& node, const Expr& called, bool launch, bool certain) {
        const Name* root = root_of(called);
        if (root == nullptr || frame_.locals.contains(root->id)) {
            if (!as<Name>(called)) children(called, certain);
            return;
        }
        const auto definition = modules_.find(*frame_.module, called);
        if (!definition) {
            // Function.apply(…)
            const auto* method = as<Attribute>(called);
            const auto cls = method ? modules_.find(*frame_.module, *method->value) : std::nullopt;
            if (cls && as<ClassDef>(cls->node)) {
                use_class(node, *cls, method->attr, certain);
            } else {
                name(called, certain);
            }
            return;
        }
        if (const auto* function = as<FunctionDef>(definition->node)) {
            if (const auto decorator = triton_decorator(*definition->module, *function);
                launch || !decorator.empty()) {
                const bool is_triton = !decorator.empty();
                add(node, is_triton ? ReasonKind::triton : ReasonKind::construct,
                    (is_triton ? "launches the Triton kernel " : "subscripts the function ") +
                        function->name,
                    certain);
                return;
            }
            this->function(*definition->module, *function, "", certain && frame_.certain);
        } else if (const auto* async = as<AsyncFunctionDef>(definition->node)) {
            add(node, ReasonKind::construct, "calls the coroutine " + async->name, certain);
        } else {
            use_class(node, *definition, "", certain);
        }
    }

    void use_class(const Call& node, const Definition& cls, const std::string& method,
                   bool certain) {
        const auto& definition = *as<ClassDef>(cls.node);
        if (method.empty() && is_record(cls)) {
            return;
        }
        if (method == "apply" && is_autograd_function(cls, 0)) {
            usage_.applies_autograd_function = true;
            apply_function(node, cls, certain);
        } else {
            add(node, ReasonKind::python_class,
                method.empty() ? "makes an object of the Python class " + definition.name
                               : "calls " + method + " of the Python class " + definition.name,
                certain);
        }
    }

    // Forward is compiled for every mode; the others for training only.
    void apply_function(const Call& node, const Definition& cls, bool certain) {
        for (const char* name : {"forward", "setup_context", "backward"}) {
            const auto [module, method] = find_method(cls, name, 0);
            const bool forward = std::string_view(name) == "forward";
            if (method != nullptr) {
                this->function(*module, *method, "", forward && certain && frame_.certain);
            } else if (std::string_view(name) != "setup_context") {
                add(node, ReasonKind::autograd,
                    "the autograd.Function " + as<ClassDef>(cls.node)->name + " has no " + name,
                    forward && certain);
            }
        }
    }

    std::pair<const PackageModule*, const FunctionDef*> find_method(const Definition& cls,
                                                                    std::string_view name,
                                                                    int depth) {
        const auto* definition = as<ClassDef>(cls.node);
        for (const StmtPtr& statement : definition->body) {
            if (const auto* method = as<FunctionDef>(statement); method && method->name == name) {
                return {cls.module, method};
            }
        }
        for (const ExprPtr& base : definition->bases) {
            const auto parent = modules_.find(*cls.module, *base);
            if (parent && as<ClassDef>(parent->node) && depth < 8) {
                if (const auto found = find_method(*parent, name, depth + 1); found.second) {
                    return found;
                }
            }
        }
        return {};
    }

    // A dataclass or NamedTuple: its objects are named tuples.
    bool is_record(const Definition& cls) {
        const auto& definition = *as<ClassDef>(cls.node);
        const auto named = [&](const ExprPtr& one) {
            const auto* call = as<Call>(one);
            const std::string name = modules_.external_name(*cls.module, call ? *call->func : *one);
            return name == "dataclasses.dataclass" || name == "typing.NamedTuple";
        };
        return std::any_of(definition.decorator_list.begin(), definition.decorator_list.end(),
                           named) ||
               std::any_of(definition.bases.begin(), definition.bases.end(), named);
    }

    bool is_autograd_function(const Definition& cls, int depth) {
        const auto* definition = as<ClassDef>(cls.node);
        for (const ExprPtr& base : definition->bases) {
            const auto parent = modules_.find(*cls.module, *base);
            const auto external = modules_.external_name(*cls.module, *base);
            if (external == "torch.autograd.Function" ||
                external == "torch.autograd.function.Function" ||
                (parent && as<ClassDef>(parent->node) && depth < 8 &&
                 is_autograd_function(*parent, depth + 1))) {
                return true;
            }
        }
        return false;
    }

    std::string triton_decorator(const PackageModule& module, const FunctionDef& function) {
        for (const ExprPtr& decorator : function.decorator_list) {
            const auto* call = as<Call>(decorator);
            const auto name = modules_.external_name(module, call ? *call->func : *decorator);
            if (begins_with(name, "triton")) return name;
        }
        return {};
    }

    // A name or attribute that is read, or called without being the package's own.
    void name(const Expr& expression, bool certain) {
        const Name* root = root_of(expression);
        if (root == nullptr) {
            children(expression, certain);
            return;
        }
        if (root->id == frame_.self || frame_.locals.contains(root->id)) return;
        const std::string external = modules_.external_name(*frame_.module, expression);
        if (!external.empty()) {
            use_external(expression, external, certain);
            return;
        }
        if (!frame_.module->likely.contains(root->id) && is_refused_builtin(root->id)) {
            add(expression, ReasonKind::dynamic,
                "the built-in " + root->id + " has no counterpart in TorchScript", certain);
        }
    }

    void use_external(const Expr& expression, const std::string& external, bool certain) {
        if (begins_with(external, std::string(own_operators))) {
            const auto parts = base::split(external.substr(own_operators.size()), '.');
            if (parts.size() > 2) usage_.operators.insert(parts[2]);
            return;
        }
        if (begins_with(external, "torch.ops")) {
            use_operator(external);
            return;
        }
        if (begins_with(external, "triton")) {
            add(expression, ReasonKind::triton, "uses " + external, certain);
        } else if (begins_with(external, "torch")) {
            if (!is_torch_name_with_counterpart(external)) {
                add(expression, ReasonKind::torch_api,
                    external + " has no counterpart in TorchScript", certain);
            }
        } else if (external != "functools.partial" && !begins_with(external, "math") &&
                   !begins_with(external, "typing")) {
            add(expression, ReasonKind::package, "uses " + external + " of another Python package",
                certain);
        }
    }

    // torch.ops.<namespace>.<name>: of the kernel itself where _ops.py leads to it.
    void use_operator(const std::string& external) {
        const auto parts = base::split(external, '.');
        if (parts.size() < 4) return;
        if (modules_.own_namespace() == parts[2]) {
            usage_.operators.insert(parts[3]);
        } else {
            usage_.foreign_operators.insert(parts[2] + "::" + parts[3]);
        }
    }

    PackageModules& modules_;
    Usage& usage_;
    Frame frame_;
    bool in_message_ = false;  // of an exception, or printed
    std::vector<const FunctionDef*> stack_;
    std::set<std::pair<const FunctionDef*, bool>> seen_;
};

}  // namespace

Usage UsageReader::read(const PackageModule& module, const FunctionDef& function,
                        const std::string& self) {
    Usage usage;
    FunctionWalker(modules_, usage).function(module, function, self, true);
    return usage;
}

}  // namespace twinkle::kernel
