#include "worker/inspect_package.h"

#include "archive/compiled_package.h"
#include "base/text.h"
#include "runtime/inspect/operator_sources.h"
#include "worker/mapping_of.h"

namespace twinkle::worker {

using archive::CompiledModel;
using base::Json;

namespace {

Json texts(const std::vector<std::string>& list) {
    Json json = Json::array();
    for (const std::string& text : list) {
        json.push_back(base::printable(text));
    }
    return json;
}

Json describe(const CompiledModel& model, runtime::OperatorSources& sources) {
    runtime::SavedCode code;
    code.operators = model.operators;
    Json operators = Json::array();
    for (const auto& op : sources.operators(code)) {
        operators.push_back(to_json(op));
    }
    Json metadata = Json::object();
    for (const auto& [key, value] : model.metadata) {
        metadata[base::printable(key)] = base::printable(value);
    }
    const auto& made_for = model.made_for;
    return {{"name", base::printable(model.name)},
            {"device", base::printable(made_for.device)},
            {"os", base::printable(made_for.os)},
            {"cpu", base::printable(made_for.cpu)},
            {"isa", texts(made_for.isa)},
            {"compute_capability", base::printable(made_for.capability)},
            {"library_bytes", model.library_bytes},
            {"gpu_code_bytes", model.gpu_code_bytes},
            {"source_bytes", model.source_bytes},
            {"metadata", metadata},
            {"operators", operators}};
}

}  // namespace

Json inspect_package(const Request& request, const Channel& channel) {
    const runtime::KernelFinder finder(
        request.kernel_dirs, [&channel](const std::string& attempt) { channel.trace(attempt); });
    const auto mapping = request.map ? std::optional(mapping_of(request)) : std::nullopt;
    const auto package = archive::read_package(request.model);
    runtime::OperatorSources sources(request.model, {}, mapping ? &*mapping : nullptr, finder);
    Json models = Json::array();
    for (const CompiledModel& model : package.models) {
        models.push_back(describe(model, sources));
    }
    return {{"kind", "compiled"},
            {"bytes", package.bytes},
            {"weight_bytes", package.weight_bytes},
            {"models", models}};
}

}  // namespace twinkle::worker
