#include "twinkle/mapping.h"

#include "base/json.h"
#include "base/sha256.h"

namespace twinkle {
namespace {

using base::Json;

template <typename Item>
Json list_json(const std::vector<Item>& items, Json (*one)(const Item&)) {
    Json list = Json::array();
    for (const Item& item : items) {
        list.push_back(one(item));
    }
    return list;
}

Json attributes_json(const std::map<std::string, AttributeValue>& attributes) {
    Json object = Json::object();
    for (const auto& [name, value] : attributes) {
        object[name] = std::visit([](const auto& held) { return Json(held); }, value);
    }
    return object;
}

Json operator_json(const MappedOperator& op) {
    return {{"name", op.name}, {"schema", op.schema}};
}

Json file_json(const MappedFile& file) {
    return {{"path", file.path}, {"size", file.size}, {"sha256", file.sha256}};
}

Json kernel_json(const MappedKernel& kernel) {
    return {{"name", kernel.name},
            {"repo_id", kernel.repo_id},
            {"commit", kernel.commit},
            {"variant", kernel.variant},
            {"device", kernel.device},
            {"path", kernel.path.generic_string()},
            {"op_namespace", kernel.op_namespace},
            {"archs", kernel.archs},
            {"operators", list_json(kernel.operators, operator_json)},
            {"files", list_json(kernel.files, file_json)}};
}

Json candidate_json(const LayerCandidate& candidate) {
    const auto& range = candidate.capability;
    Json json = {{"kernel", candidate.kernel},
                 {"layer", candidate.layer},
                 {"device", candidate.device},
                 {"capability", range ? Json::array({range->first, range->second}) : Json()},
                 {"mode", candidate.mode},
                 {"has_backward", candidate.has_backward},
                 {"can_torch_compile", candidate.can_torch_compile}};
    if (!candidate.precision.empty()) {
        json["precision"] = candidate.precision;
    }
    return json;
}

Json layer_json(const MappedLayer& layer) {
    Json json = {{"kernel_name", layer.kernel_name},
                 {"classes", layer.classes},
                 {"modules", layer.modules},
                 {"when", attributes_json(layer.when)},
                 {"when_submodule", layer.when_submodule},
                 {"attributes", attributes_json(layer.attributes)},
                 {"candidates", list_json(layer.candidates, candidate_json)}};
    if (layer.preset) {
        json["preset"] = true;
    }
    return json;
}

// Writes only what is said: a candidate has one source of three.
Json function_candidate_json(const FunctionCandidate& candidate) {
    Json json = {{"device", candidate.device},
                 {"mode", candidate.mode},
                 {"has_backward", candidate.has_backward},
                 {"can_torch_compile", candidate.can_torch_compile}};
    const std::pair<const char*, const std::string&> texts[] = {{"kernel", candidate.kernel},
                                                                {"function", candidate.function},
                                                                {"source", candidate.source},
                                                                {"file", candidate.file},
                                                                {"operator", candidate.op}};
    for (const auto& [key, text] : texts) {
        if (!text.empty()) {
            json[key] = text;
        }
    }
    return json;
}

Json function_json(const MappedFunction& function) {
    return {{"target_module", function.target_module},
            {"func_name", function.func_name},
            {"candidates", list_json(function.candidates, function_candidate_json)}};
}

Json pattern_json(const MappedPattern& pattern) {
    Json json = {{"name", pattern.name},
                 {"source", pattern.source},
                 {"file", pattern.file},
                 {"formulas", pattern.formulas},
                 {"candidates", list_json(pattern.candidates, function_candidate_json)}};
    if (pattern.preset) {
        json["preset"] = true;
    }
    return json;
}

Json rejection_json(const Rejection& rejection) {
    return {{"name", rejection.name}, {"because", rejection.because}};
}

Json decision_json(const Decision& decision) {
    return {{"what", decision.what},
            {"chosen", decision.chosen ? Json(*decision.chosen) : Json()},
            {"because", decision.because},
            {"rejected", list_json(decision.rejected, rejection_json)}};
}

}  // namespace

std::string MappedKernel::build_id() const {
    base::Sha256 hash;
    for (const MappedFile& file : files) {
        std::string line = file.path;
        line += '\0';
        line += std::to_string(file.size);
        line += '\0';
        line += file.sha256;
        line += '\n';
        hash.update(line);
    }
    return hash.finish_hex();
}

std::string MappedFunction::full_name() const {
    // TorchScript gives what a script defines itself no module.
    return target_module == "__main__" ? func_name : target_module + "." + func_name;
}

std::string Mapping::to_json() const {
    return base::dump_json({{"schema", "twinkle.map/1"},
                            {"target", target},
                            {"kernels", list_json(kernels, kernel_json)},
                            {"layers", list_json(layers, layer_json)},
                            {"functions", list_json(functions, function_json)},
                            {"patterns", list_json(patterns, pattern_json)},
                            {"decisions", list_json(decisions, decision_json)}});
}

}  // namespace twinkle
