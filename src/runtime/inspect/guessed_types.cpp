#include "runtime/inspect/guessed_types.h"

#include "base/text.h"
#include "python/walk.h"
#include "runtime/graph/format.h"

#include <algorithm>
#include <regex>
#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

constexpr std::size_t longest_guessed = 100;
constexpr std::size_t most_inputs = 16;
constexpr std::size_t most_attributes = 200;

// A host's member at one path: a value of a type, or a module.
struct HostPart {
    c10::TypePtr type;       // null: a module
    std::size_t inputs = 1;  // of its forward
};
using HostParts = std::map<std::string, HostPart>;  // by dotted path

// {"gate_proj", "weight"} for self.gate_proj.weight; empty if it is no attribute of self.
std::vector<std::string> path_below(const py::Expr& expr, const std::string& self) {
    std::vector<std::string> parts;
    const py::Expr* at = &expr;
    while (const auto* attribute = py::as<py::Attribute>(*at)) {
        parts.insert(parts.begin(), attribute->attr);
        at = attribute->value.get();
    }
    const auto* root = py::as<py::Name>(*at);
    return root != nullptr && root->id == self ? parts : std::vector<std::string>();
}

bool is_of_tensors(const std::string& name) {
    static const std::set<std::string> names = {
        "shape", "dtype", "device", "view", "reshape",   "transpose",  "to",    "float",
        "t",     "size",  "dim",    "data", "unsqueeze", "contiguous", "append"};
    return names.contains(name);
}

// The members of a host that forward reads, with the modules above them.
HostParts parts_read(const py::FunctionDef& forward, const std::string& self,
                     const std::map<std::string, c10::TypePtr>& annotated) {
    HostParts found;
    const auto look = [&](const py::Node& node) {
        const auto* call = py::as<py::Call>(node);
        if (call != nullptr) {
            const auto path = path_below(*call->func, self);
            if (!path.empty() && !is_of_tensors(path.back())) {
                found[base::join(path, ".")] = {
                    nullptr, std::min(call->args.size() + call->keywords.size(), most_inputs)};
            }
        } else if (const auto* attribute = py::as<py::Attribute>(node)) {
            auto path = path_below(*attribute, self);
            if (path.size() > 1 && is_of_tensors(path.back())) {
                path.pop_back();
            }
            if (!path.empty()) {
                const auto known = path.size() == 1 ? annotated.find(path[0]) : annotated.end();
                found.emplace(base::join(path, "."),
                              HostPart{known != annotated.end() && known->second
                                           ? known->second
                                           : type_by_name(path.back())});
            }
        }
        return found.size() < most_attributes;
    };
    for (const py::StmtPtr& statement : forward.body) {
        py::walk(*statement, look);
    }
    const HostParts read = found;
    for (const auto& [path, part] : read) {
        for (auto dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
            HostPart& above = found[path.substr(0, dot)];
            above.type = nullptr;
        }
    }
    return found;
}

c10::IValue value_of(const c10::TypePtr& type) {
    switch (type->kind()) {
        case c10::TypeKind::FloatType: return 0.5;
        case c10::TypeKind::IntType: return std::int64_t{2};
        case c10::TypeKind::BoolType: return true;
        case c10::TypeKind::StringType: return std::string("silu");
        case c10::TypeKind::ListType: return c10::impl::GenericList(type->containedTypes().at(0));
        case c10::TypeKind::TupleType: {
            std::vector<c10::IValue> elements;
            for (const c10::TypePtr& one : type->containedTypes()) {
                elements.push_back(value_of(one));
            }
            return c10::ivalue::Tuple::create(std::move(elements));
        }
        default: return {};
    }
}

jit::Module host_of(const HostParts& parts, const std::string& prefix,
                    const std::shared_ptr<jit::CompilationUnit>& unit, std::size_t inputs) {
    jit::Module host(c10::QualifiedName("__torch__.twinkle_inspected.Host"), unit, true);
    for (const auto& [path, part] : parts) {
        if (!path.starts_with(prefix) || path.find('.', prefix.size()) != std::string::npos) {
            continue;
        }
        const std::string name = path.substr(prefix.size());
        if (part.type == nullptr) {
            host.register_module(name, host_of(parts, path + ".", unit, part.inputs));
        } else if (part.type->kind() == c10::TypeKind::TensorType) {
            host.register_parameter(name, torch::ones({2, 2}), false);
        } else {
            host.register_attribute(name, part.type, value_of(part.type));
        }
    }
    std::string parameters;
    for (std::size_t i = 0; i < inputs; ++i) {
        parameters += fmt::format(", x{}", i);
    }
    host.define("def forward(self" + parameters + "):\n    return " +
                (inputs > 0 ? "x0" : "torch.zeros(1)") + "\n");
    return host;
}

// The types that a class declares for attributes; null for a module.
std::map<std::string, c10::TypePtr> annotations_of(Compilation& compilation,
                                                   const PackageModule& module,
                                                   const py::ClassDef& described) {
    std::map<std::string, c10::TypePtr> types;
    for (const py::StmtPtr& statement : described.body) {
        const auto* declared = py::as<py::AnnAssign>(statement);
        const auto* name = declared ? py::as<py::Name>(declared->target) : nullptr;
        if (name != nullptr) {
            types[name->id] = compilation.type_of(module, {}, *declared->annotation);
        }
    }
    return types;
}

TypedParameter typed(Compilation& compilation, const PackageModule& module, const py::Arg& arg,
                     const TypeGuess& guess) {
    if (arg.annotation) {
        return {arg.arg, compilation.type_of(module, {}, *arg.annotation), false};
    }
    return {arg.arg, guess(arg.arg), false};
}

}  // namespace

c10::TypePtr type_by_name(const std::string& name) {
    static const std::regex floats(
        "eps|epsilon|scal(e|ing)$|dropout|^alpha|theta|softcap|threshold");
    static const std::regex flags("^(is_|use_|has_|norm_topk|training)|causal|^return_");
    static const std::regex integers(
        "dim|size|features|num_|heads|top_k|groups|idx$|step|stride|length$|hidden$|vocab|chunk|"
        "max_seqlen|block_m|block_n|^[mnk]$");
    static const std::set<std::string> texts = {"activation", "flow", "hidden_act", "mode",
                                                "kv_cache_dtype"};
    if (name.size() > longest_guessed) {
        return c10::TensorType::get();
    }
    return std::regex_search(name, floats)     ? c10::TypePtr(c10::FloatType::get())
           : std::regex_search(name, flags)    ? c10::TypePtr(c10::BoolType::get())
           : texts.contains(name)              ? c10::TypePtr(c10::StringType::get())
           : std::regex_search(name, integers) ? c10::TypePtr(c10::IntType::get())
                                               : c10::TypePtr(c10::TensorType::get());
}

std::vector<TypedParameter> required_parameters(Compilation& compilation,
                                                const PackageModule& module,
                                                const py::Arguments& arguments, bool has_self,
                                                const TypeGuess& guess) {
    std::vector<const py::Arg*> positional;
    for (const py::Arg& arg : arguments.posonlyargs) {
        positional.push_back(&arg);
    }
    for (const py::Arg& arg : arguments.args) {
        positional.push_back(&arg);
    }
    positional.resize(positional.size() - std::min(positional.size(), arguments.defaults.size()));
    std::vector<TypedParameter> result;
    for (std::size_t i = has_self ? 1 : 0; i < positional.size(); ++i) {
        result.push_back(typed(compilation, module, *positional[i], guess));
    }
    for (std::size_t i = 0; i < arguments.kwonlyargs.size(); ++i) {
        if (arguments.kw_defaults[i] == nullptr) {
            result.push_back(typed(compilation, module, arguments.kwonlyargs[i], guess));
            result.back().keyword_only = true;
        }
    }
    return result;
}

jit::Module guessed_host(Compilation& compilation, const PackageModule& module,
                         const py::ClassDef& described, const py::FunctionDef& forward) {
    const auto& args = forward.args;
    const std::string self = !args.posonlyargs.empty() ? args.posonlyargs.front().arg
                             : !args.args.empty()      ? args.args.front().arg
                                                       : "self";
    const auto parts = parts_read(forward, self, annotations_of(compilation, module, described));
    return host_of(parts, "", compilation.shared_unit(), 1);
}

}  // namespace twinkle::runtime
