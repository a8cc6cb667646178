#include "cli/library_operators.h"

#include "cli/json_fields.h"
#include "cli/model_request.h"
#include "kernel/schema.h"
#include "target/runtime.h"

namespace twinkle::cli {
namespace {

using base::Json;

// A child may say anything: what is no schema of that name is dropped.
std::vector<MappedOperator> read_operators(const Json& list) {
    std::vector<MappedOperator> operators;
    for (const Json& one : list) {
        const auto name = text_of(one, "name");
        const auto schema = kernel::parse_schema(text_of(one, "schema"));
        if (schema && schema->op_namespace.empty() && schema->name == name) {
            operators.push_back({name, schema->text});
        }
    }
    return operators;
}

}  // namespace

project::AskOperators operators_by_loading(Console& console) {
    return [&console](const MappedKernel& kernel)
               -> tl::expected<std::vector<MappedOperator>, std::string> {
        if (!target::choose_runtime(target::this_machine())) {
            return tl::unexpected(std::string("there is no LibTorch here"));
        }
        Mapping one;
        one.kernels.push_back(kernel);
        protocol::Request request;
        request.command = "kernel-operators";
        request.map = one.to_json();
        try {
            const Json result = run_worker(find_worker(console), request, console);
            return read_operators(list_of(result, "operators"));
        } catch (const Error& error) {
            const auto& details = error.details();
            return tl::unexpected(details.what + (details.why.empty() ? "" : ", " + details.why));
        }
    };
}

}  // namespace twinkle::cli
