#include "runtime/inspect/operator_sources.h"
#include "runtime/graph/format.h"

#include "base/file.h"
#include "base/text.h"
#include "runtime/kernels/declared_operators.h"
#include "runtime/model/program_function.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <algorithm>

namespace twinkle::runtime {

using base::Json;

namespace {

// Finds the schema of an operator in a build; overloads are separate operators.
const MappedOperator* find_operator(const MappedKernel& kernel, const std::string& name) {
    for (const MappedOperator& op : kernel.operators) {
        if (op.name == name || op.name.starts_with(name + ".")) {
            return &op;
        }
    }
    return nullptr;
}

// The arguments that a schema says the operator writes into.
std::vector<std::string> mutated_arguments(const std::string& schema) {
    std::vector<std::string> names;
    if (schema.empty()) {
        return names;
    }
    try {
        const c10::FunctionSchema parsed = torch::jit::parseSchema(schema);
        for (const c10::Argument& argument : parsed.arguments()) {
            if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) {
                names.push_back(argument.name());
            }
        }
    } catch (const std::exception&) {
        names.clear();  // LibTorch cannot read it; what cannot be declared is said elsewhere
    }
    return names;
}

}  // namespace

OperatorSources::OperatorSources(const std::filesystem::path& model,
                                 const std::vector<RequiredKernel>& required,
                                 const Mapping* mapping, const KernelFinder& finder)
    : mapping_(mapping), finder_(finder) {
    for (const RequiredKernel& one : required) {
        NeededKernel needed{one, std::nullopt, ""};
        try {
            needed.found = finder.find(one, model);
        } catch (const Error& error) {
            const auto& details = error.details();
            needed.because = details.what + (details.why.empty() ? "" : ": " + details.why);
        }
        kernels_.push_back(std::move(needed));
    }
}

// Best first: the build that the model names, then the mapping's, then those in the folders.
const std::vector<OperatorSources::Source>& OperatorSources::sources_of(
    const std::string& op_namespace) {
    const auto [entry, first] = sources_.try_emplace(op_namespace);
    std::vector<Source>& sources = entry->second;
    if (!first) {
        return sources;
    }
    for (const NeededKernel& needed : kernels_) {
        if (needed.found && needed.required.op_namespace == op_namespace) {
            sources.push_back({*needed.found, "the model names this build"});
        }
    }
    if (mapping_ != nullptr) {
        for (const MappedKernel& kernel : mapping_->kernels) {
            if (kernel.op_namespace == op_namespace) {
                sources.push_back({kernel, "the manifest's kernel has it"});
            }
        }
    }
    for (MappedKernel& kernel : finder_.builds_of(op_namespace)) {
        const std::string where = base::display_path(kernel.path);
        sources.push_back({std::move(kernel), "found in " + where});
    }
    return sources;
}

std::vector<NeededOperator> OperatorSources::operators(const SavedCode& code) {
    std::vector<NeededOperator> needed;
    for (const auto& [name, calls] : code.operators) {
        const std::string op_namespace = name.substr(0, name.find("::"));
        const bool own = op_namespace == "aten" || op_namespace == "prim";
        NeededOperator op{name, calls, is_registered(name), std::nullopt, "", ""};
        if (op_namespace == "prim" || op_namespace == "twinkle" || (own && op.registered)) {
            continue;
        }
        if (op.registered) {
            op.because = "part of LibTorch";
            needed.push_back(std::move(op));
            continue;
        }
        op.because =
            own ? "this LibTorch does not have it: the model was saved by a newer one"
            : op_namespace == program_namespace
                ? "a C++ function of the program that kernelized the model: no other has it"
                : "not in LibTorch, and in no kernel that is known here";
        const std::string short_name = name.substr(op_namespace.size() + 2);
        for (const Source& source : sources_of(op_namespace)) {
            if (const auto* found = find_operator(source.kernel, short_name)) {
                op.kernel = source.kernel;
                op.schema = found->schema;
                op.because = source.because;
                break;
            }
            op.because = fmt::format(
                "not in LibTorch; the build {} of {} has the namespace, but no "
                "such operator in its library's strings",
                base::display_path(source.kernel.path), source.kernel.name);
        }
        needed.push_back(std::move(op));
    }
    return needed;
}

Json to_json(const NeededKernel& kernel) {
    return {{"name", kernel.required.name},
            {"variant", kernel.required.variant},
            {"op_namespace", kernel.required.op_namespace},
            {"build", kernel.required.build_id},
            {"path", kernel.found ? Json(kernel.found->path.string()) : Json()},
            {"because", base::printable(kernel.because)}};
}

Json to_json(const NeededOperator& op) {
    return {{"name", base::printable(op.name)},
            {"calls", op.calls},
            {"from", op.registered ? Json("LibTorch")
                     : op.kernel   ? Json(op.kernel->name)
                                   : Json()},
            {"variant", op.kernel ? Json(op.kernel->variant) : Json()},
            {"path", op.kernel ? Json(op.kernel->path.string()) : Json()},
            {"schema", op.schema.empty() ? Json() : Json(base::printable(op.schema))},
            {"mutates", mutated_arguments(op.schema)},
            {"because", base::printable(op.because)}};
}

}  // namespace twinkle::runtime
