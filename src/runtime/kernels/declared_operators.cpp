#include "runtime/kernels/declared_operators.h"

#include "base/text.h"
#include "runtime/kernels/op_library.h"
#include "runtime/kernels/verified_files.h"
#include "twinkle/error.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/frontend/builtin_functions.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/library.h>

#include <mutex>

namespace twinkle::runtime {

bool is_registered(const std::string& qualified_name) {
    const auto symbol = c10::Symbol::fromQualString(qualified_name);
    return !torch::jit::getAllOperatorsFor(symbol).empty() ||
           !torch::jit::getAllBuiltinFunctionsFor(symbol).empty();
}

std::vector<std::string> declare_operators(const MappedKernel& kernel) {
    static auto& declared = *new std::vector<std::unique_ptr<torch::Library>>();
    static std::mutex mutex;
    const std::scoped_lock lock(mutex);
    std::vector<std::string> failed;
    if (kernel.op_namespace.empty() || kernel.operators.empty()) {
        return failed;
    }
    auto library = std::make_unique<torch::Library>(torch::Library::FRAGMENT, kernel.op_namespace,
                                                    std::nullopt, "declared by twinkle", 0);
    for (const MappedOperator& op : kernel.operators) {
        try {
            c10::FunctionSchema schema = torch::jit::parseSchema(op.schema);
            schema.setAliasAnalysis(c10::AliasAnalysisKind::FROM_SCHEMA);  // as a library has it
            const c10::OperatorName name(kernel.op_namespace + "::" + schema.name(),
                                         schema.overload_name());
            if (!c10::Dispatcher::singleton().findSchema(name)) {
                library->def(std::move(schema));
            }
        } catch (const std::exception& error) {
            const std::string text = error.what();
            failed.push_back(base::printable(op.name + ": " + text.substr(0, text.find('\n'))));
        }
    }
    declared.push_back(std::move(library));
    complete_alias_sets(kernel.op_namespace);
    return failed;
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
    return result;
}

}  // namespace twinkle::runtime
