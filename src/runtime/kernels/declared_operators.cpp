#include "runtime/kernels/declared_operators.h"

#include "base/text.h"
#include "runtime/kernels/op_library.h"
#include "twinkle/error.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/frontend/builtin_functions.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/library.h>

#include <algorithm>
#include <mutex>

namespace twinkle::runtime {

namespace {

// The declarations of one kernel.
struct Declaration {
    std::unique_ptr<torch::Library> schemas;
    // A kernel per operator for a device that nobody has. It keeps the dispatcher's entry where it
    // is, so that graphs which have resolved an operator find the one that takes its place.
    std::unique_ptr<torch::Library> placeholders;
    std::vector<c10::OperatorName> names;
    std::vector<std::string> failed;  // each with its reason
};

// A kernel of this machine that children load.
struct Tried {
    std::shared_ptr<const LoadedKernel> kernel;
    SealedCode code;
    Declaration declaration;
};

struct Declarations {
    std::mutex mutex;
    std::vector<Declaration> for_good;  // of kernels for other machines
    std::vector<std::shared_ptr<const LoadedKernel>> of_others;
    std::vector<Tried> tried;
};

Declarations& all_declarations() {
    static auto& declarations = *new Declarations();
    return declarations;
}

std::unique_ptr<torch::Library> fragment(const std::string& op_namespace) {
    return std::make_unique<torch::Library>(torch::Library::FRAGMENT, op_namespace, std::nullopt,
                                            "declared by twinkle", 0);
}

void declare(Declaration& declaration, const std::string& op_namespace, const std::string& text) {
    c10::FunctionSchema schema = torch::jit::parseSchema(text);
    schema.setAliasAnalysis(c10::AliasAnalysisKind::FROM_SCHEMA);  // as a library has it
    const c10::OperatorName name(op_namespace + "::" + schema.name(), schema.overload_name());
    if (!c10::Dispatcher::singleton().findSchema(name)) {
        declaration.schemas->def(std::move(schema));
        declaration.placeholders->impl(
            full_name(name).c_str(),
            torch::dispatch(c10::DispatchKey::PrivateUse3, torch::CppFunction::makeFallthrough()));
        declaration.names.push_back(name);
    }
}

Declaration declare_all(const std::string& op_namespace,
                        const std::vector<MappedOperator>& operators) {
    Declaration declaration;
    declaration.schemas = fragment(op_namespace);
    declaration.placeholders = fragment(op_namespace);
    for (const MappedOperator& op : operators) {
        try {
            declare(declaration, op_namespace, op.schema);
        } catch (const std::exception& error) {
            const std::string text = error.what();
            declaration.failed.push_back(
                base::printable(op.name + ": " + text.substr(0, text.find('\n'))));
        }
    }
    complete_alias_sets(op_namespace);
    return declaration;
}

// Nodes of graphs point at the interpreter's operators, which would go with their schemas.
void keep_interpreter_operators(const std::vector<c10::OperatorName>& names) {
    static auto& kept = *new std::vector<std::shared_ptr<torch::jit::Operator>>();
    for (const c10::OperatorName& name : names) {
        const auto operators =
            torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name.name));
        kept.insert(kept.end(), operators.begin(), operators.end());
    }
}

}  // namespace

bool is_registered(const std::string& qualified_name) {
    const auto symbol = c10::Symbol::fromQualString(qualified_name);
    return !torch::jit::getAllOperatorsFor(symbol).empty() ||
           !torch::jit::getAllBuiltinFunctionsFor(symbol).empty();
}

std::vector<std::string> declare_operators(const MappedKernel& kernel) {
    Declarations& declarations = all_declarations();
    const std::scoped_lock lock(declarations.mutex);
    if (kernel.op_namespace.empty() || kernel.operators.empty()) {
        return {};
    }
    auto declaration = declare_all(kernel.op_namespace, kernel.operators);
    for (const c10::OperatorName& name : declaration.names) {
        set_declared_facts(name, std::nullopt);
    }
    return declarations.for_good.emplace_back(std::move(declaration)).failed;
}

std::shared_ptr<const LoadedKernel> declare_kernel(const MappedKernel& kernel) {
    if (!kernel.op_namespace.empty() && kernel.operators.empty()) {
        throw Error(
            ErrorCode::refused,
            {.what = "the operators of the kernel " + kernel.name + " are not known",
             .where = base::printable(kernel.path.string()),
             .why = "the mapping has no schemas of it: they cannot be read from its library "
                    "without loading it",
             .hint = "kernelize on the machine that the model is for"});
    }
    auto result = std::make_shared<LoadedKernel>();
    result->kernel = kernel;
    result->build_id = kernel.build_id();
    result->sources = read_verified_sources(kernel);
    declare_operators(kernel);
    Declarations& declarations = all_declarations();
    const std::scoped_lock lock(declarations.mutex);
    declarations.of_others.push_back(result);
    return result;
}

std::shared_ptr<const LoadedKernel> kernel_with_operators(const std::string& op_namespace) {
    std::vector<std::shared_ptr<const LoadedKernel>> kernels = loaded_kernels();
    Declarations& declarations = all_declarations();
    const std::scoped_lock lock(declarations.mutex);
    kernels.insert(kernels.end(), declarations.of_others.begin(), declarations.of_others.end());
    for (const Tried& one : declarations.tried) {
        kernels.push_back(one.kernel);
    }
    const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const auto& one) {
        return one->kernel.op_namespace == op_namespace;
    });
    return found == kernels.end() ? nullptr : *found;
}

std::shared_ptr<const LoadedKernel> declare_tried(const MappedKernel& kernel, VerifiedFiles files,
                                                  const std::vector<OperatorFacts>& operators) {
    auto result = std::make_shared<LoadedKernel>();
    result->kernel = kernel;
    result->build_id = kernel.build_id();
    result->sources = std::move(files.sources);
    std::vector<MappedOperator> schemas;
    for (const OperatorFacts& op : operators) {
        schemas.push_back({op.name, op.schema});
    }
    Declarations& declarations = all_declarations();
    const std::scoped_lock lock(declarations.mutex);
    Declaration declaration = declare_all(kernel.op_namespace, schemas);
    for (const OperatorFacts& op : operators) {
        const auto dot = op.name.find('.');
        set_declared_facts({kernel.op_namespace + "::" + op.name.substr(0, dot),
                            dot == std::string::npos ? "" : op.name.substr(dot + 1)},
                           op);
    }
    declarations.tried.push_back({result, std::move(files.code), std::move(declaration)});
    return result;
}

std::shared_ptr<const LoadedKernel> tried_kernel(const std::string& build_id) {
    Declarations& declarations = all_declarations();
    const std::scoped_lock lock(declarations.mutex);
    const auto found =
        std::find_if(declarations.tried.begin(), declarations.tried.end(),
                     [&](const Tried& one) { return one.kernel->build_id == build_id; });
    return found != declarations.tried.end() ? found->kernel : nullptr;
}

bool has_declared_libraries() {
    Declarations& declarations = all_declarations();
    const std::scoped_lock lock(declarations.mutex);
    return std::any_of(declarations.tried.begin(), declarations.tried.end(),
                       [](const Tried& one) { return !one.code.empty(); });
}

void open_declared_libraries() {
    Declarations& declarations = all_declarations();
    const std::scoped_lock lock(declarations.mutex);
    for (Tried& one : declarations.tried) {
        keep_interpreter_operators(one.declaration.names);
        one.declaration.schemas.reset();
        forget_declared_facts(one.kernel->kernel.op_namespace);
        open_op_libraries(one.kernel->kernel, std::move(one.code));
        add_loaded(one.kernel);
    }
    declarations.tried.clear();
}

}  // namespace twinkle::runtime
