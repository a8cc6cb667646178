#include "kernel/constructs.h"

#include <algorithm>
#include <array>
#include <map>

namespace twinkle::kernel {
namespace {

using namespace python;

bool has_counterpart(NodeKind kind) {
    switch (kind) {
        case NodeKind::FunctionDef:
        case NodeKind::AsyncFunctionDef:
        case NodeKind::ClassDef:
        case NodeKind::TypeAlias:
        case NodeKind::AsyncFor:
        case NodeKind::AsyncWith:
        case NodeKind::Match:
        case NodeKind::Try:
        case NodeKind::TryStar:
        case NodeKind::Global:
        case NodeKind::Nonlocal:
        case NodeKind::NamedExpr:
        case NodeKind::Lambda:
        case NodeKind::Set:
        case NodeKind::SetComp:
        case NodeKind::Await:
        case NodeKind::Yield:
        case NodeKind::YieldFrom: return false;
        default: return true;
    }
}

const std::vector<Comprehension>* generators_of(const Node& node) {
    if (const auto* list = as<ListComp>(node)) {
        return &list->generators;
    }
    if (const auto* generator = as<GeneratorExp>(node)) {
        return &generator->generators;
    }
    const auto* mapping = as<DictComp>(node);
    return mapping ? &mapping->generators : nullptr;
}

std::optional<std::string> refused_expression(const Node& node) {
    if (const auto* constant = as<Constant>(node)) {
        if (std::holds_alternative<Bytes>(constant->value) ||
            std::holds_alternative<Imaginary>(constant->value) ||
            std::holds_alternative<BigInteger>(constant->value)) {
            return "a constant that TorchScript does not have (bytes, complex or a huge integer)";
        }
    } else if (const auto* compare = as<Compare>(node)) {
        for (std::size_t i = 0; i + 1 < compare->comparators.size(); ++i) {
            if (!is_simple(*compare->comparators[i])) {
                return "a chained comparison of something that would be computed twice";
            }
        }
    } else if (const auto* loops = generators_of(node)) {
        if (loops->size() != 1 || !loops->front().ifs.empty() || loops->front().is_async) {
            return "a comprehension with a condition or several loops";
        }
    } else if (const auto* dict = as<Dict>(node)) {
        if (std::any_of(dict->keys.begin(), dict->keys.end(),
                        [](const ExprPtr& key) { return key == nullptr; })) {
            return "a ** entry in a dictionary";
        }
    }
    return std::nullopt;
}

}  // namespace

bool is_simple(const Expr& expr) {
    if (const auto* attribute = as<Attribute>(expr)) {
        return is_simple(*attribute->value);
    }
    if (const auto* subscript = as<Subscript>(expr)) {
        return is_simple(*subscript->value) && is_simple(*subscript->slice);
    }
    if (const auto* unary = as<UnaryOp>(expr)) {
        return is_simple(*unary->operand);
    }
    if (const auto* call = as<Call>(expr)) {
        const auto* method = as<Attribute>(call->func);
        return method != nullptr && !method->attr.ends_with('_') && is_simple(*method->value) &&
               call->keywords.empty() &&
               std::all_of(call->args.begin(), call->args.end(),
                           [](const ExprPtr& argument) { return is_simple(*argument); });
    }
    return as<Name>(expr) != nullptr || as<Constant>(expr) != nullptr;
}

std::string no_counterpart(const Node& node) {
    return std::string(kind_name(node.kind)) + " has no counterpart in TorchScript";
}

std::optional<std::string> refused_construct(const Node& node) {
    if (!has_counterpart(node.kind)) {
        return no_counterpart(node);
    }
    if (const auto* loop = as<While>(node); loop && !loop->orelse.empty()) {
        return "while … else";
    }
    if (const auto* loop = as<For>(node); loop && !loop->orelse.empty()) {
        return "for … else";
    }
    if (const auto* raise = as<Raise>(node); raise && !raise->exc) {
        return "a raise without an exception";
    }
    if (const auto* augmented = as<AugAssign>(node);
        augmented && !as<Name>(augmented->target) &&
        (augmented->op == Operator::MatMult || augmented->op == Operator::FloorDiv)) {
        return "an augmented @= or //= of something that is no name";
    }
    return refused_expression(node);
}

std::optional<std::string> refused_parameters(const Arguments& arguments, std::string_view name) {
    if (arguments.vararg || arguments.kwarg) {
        return "*args or **kwargs in the parameters of " + std::string(name);
    }
    return std::nullopt;
}

Context context_of(std::string_view manager) {
    static const std::map<std::string_view, Context> known = {
        {"torch.no_grad", Context::no_grad},
        {"torch.enable_grad", Context::enable_grad},
        {"torch.profiler.record_function", Context::none},
        {"torch.autograd.profiler.record_function", Context::none},
        {"torch.cuda.nvtx.range", Context::none},
        {"contextlib.nullcontext", Context::none}};
    const auto found = known.find(manager);
    return found == known.end() ? Context::unknown : found->second;
}

bool is_percent_format(const Node& node) {
    const auto* operation = as<BinOp>(node);
    if (operation == nullptr || operation->op != Operator::Mod) {
        return false;
    }
    const auto* text = as<Constant>(operation->left);
    return (text != nullptr && text->string() != nullptr) || as<JoinedStr>(operation->left);
}

bool is_refused_builtin(std::string_view name) {
    static constexpr std::array<std::string_view, 31> refused{
        "__import__", "bytearray", "bytes",  "callable", "classmethod", "compile", "delattr",
        "dir",        "eval",      "exec",   "filter",   "frozenset",   "globals", "id",
        "input",      "iter",      "locals", "map",      "memoryview",  "next",    "object",
        "open",       "property",  "repr",   "set",      "setattr",     "slice",   "staticmethod",
        "super",      "type",      "vars"};
    return std::find(refused.begin(), refused.end(), name) != refused.end();
}

}  // namespace twinkle::kernel
