#include "cli/kernel_json.h"

#include <algorithm>

#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/library_json.h"

namespace twinkle::cli {
namespace {

using base::Json;
using kernel::Parameter;
using kernel::ParameterKind;

const char* kind_name(ParameterKind kind) {
    switch (kind) {
        case ParameterKind::positional_only: return "positional-only";
        case ParameterKind::positional_or_keyword: return "positional-or-keyword";
        case ParameterKind::var_positional: return "var-positional";
        case ParameterKind::keyword_only: return "keyword-only";
        case ParameterKind::var_keyword: return "var-keyword";
    }
    return "";
}

Json parameters_json(const std::vector<Parameter>& parameters) {
    Json list = Json::array();
    for (const Parameter& parameter : parameters) {
        list.push_back(
            {{"name", parameter.name},
             {"kind", kind_name(parameter.kind)},
             {"annotation", text_or_null(parameter.annotation)},
             {"default", parameter.has_default ? Json(parameter.default_text) : Json()}});
    }
    return list;
}

void add_verdict(Json& json, const kernel::Verdict& verdict, const kernel::Usage& usage) {
    json["operators"] = usage.operators;
    json["foreign_operators"] = usage.foreign_operators;
    json["autograd_function"] = usage.applies_autograd_function;
    json["verdict"] = kernel::usability_name(verdict.usable);
    json["usable"] = verdict.usable == kernel::Usability::not_compiled
                         ? Json()
                         : Json(verdict.usable != kernel::Usability::needs_python);
    json["compiled_for"] = text_or_null(verdict.types);
    json["because"] = kernel::verdict_text(verdict);
    json["reasons"] = Json::array();
    for (const kernel::Reason& reason : verdict.reasons) {
        json["reasons"].push_back({{"kind", kernel::reason_name(reason.kind)},
                                   {"file", text_or_null(reason.file)},
                                   {"line", reason.line > 0 ? Json(reason.line) : Json()},
                                   {"text", reason.text},
                                   {"certain", reason.certain}});
    }
}

Json problems_json(const std::vector<kernel::Problem>& problems) {
    Json list = Json::array();
    for (const kernel::Problem& problem : problems) {
        list.push_back({{"file", problem.file}, {"line", problem.line}, {"text", problem.text}});
    }
    return list;
}

Json layer_json(const kernel::JudgedLayer& judged) {
    const kernel::LayerSource& layer = judged.layer;
    Json submodules = Json::array();
    for (const kernel::HostCall& call : layer.host_calls) {
        submodules.push_back(
            {{"path", call.path}, {"arguments", call.arguments}, {"line", call.line}});
    }
    Json json{{"name", layer.name},
              {"file", layer.file},
              {"line", layer.line},
              {"bases", layer.bases},
              {"has_backward", layer.has_backward},
              {"can_torch_compile", layer.can_torch_compile},
              {"precision", text_or_null(layer.precision)},
              {"prepares", layer.prepares},
              {"parameters", parameters_json(layer.parameters)},
              {"returns", text_or_null(layer.returns)},
              {"needs", layer.host_attributes},
              {"writes", layer.host_writes},
              {"calls", submodules},
              {"problems", problems_json(layer.problems)}};
    add_verdict(json, judged.verdict, layer.usage);
    return json;
}

Json function_json(const kernel::JudgedFunction& judged) {
    const kernel::FunctionSource& function = judged.function;
    Json json{{"name", function.name},
              {"file", function.file},
              {"line", function.line},
              {"parameters", parameters_json(function.parameters)},
              {"returns", text_or_null(function.returns)},
              {"decorators", function.decorators}};
    add_verdict(json, judged.verdict, function.usage);
    return json;
}

Json operator_json(const kernel::OperatorFacts& op) {
    return {{"name", op.name},
            {"schema", op.schema},
            {"keys", op.keys},
            {"mutates", op.mutates},
            {"schema_certain", op.schema_is_certain},
            {"keys_certain", op.keys_are_certain}};
}

Json tunable_json(const tuning::Tunable& tunable) {
    Json arguments = Json::object();
    for (const auto& argument : tunable.arguments) {
        arguments[base::printable(argument.name)] = argument.values;
    }
    Json defaults = Json::array();
    for (const auto& rule : tunable.defaults) {
        defaults.push_back(rule.cfg);
    }
    return {{"arguments", arguments},
            {"constraints", tunable.constraints.size()},
            {"defaults", defaults}};
}

Json tuning_json(const operations::KernelView& view) {
    Json list = Json::array();
    for (const auto& tuned :
         view.tuning ? view.tuning->operators : std::vector<tuning::OperatorTuning>()) {
        Json properties = Json::object();
        for (const auto& [name, bucketing] : tuned.properties) {
            properties[name] = bucketing.text();
        }
        list.push_back({{"operator", base::printable(tuned.name)},
                        {"properties", properties},
                        {"forward", tuned.forward ? tunable_json(*tuned.forward) : Json()},
                        {"backward", tuned.backward ? tunable_json(*tuned.backward) : Json()}});
    }
    return list;
}

}  // namespace

Json kernel_json(const operations::KernelView& view, bool symbols) {
    const kernel::Inspection& inspection = view.inspection;
    const auto& metadata = inspection.build.metadata;
    Json json{{"kind", "kernel"},
              {"path", inspection.build.path.string()},
              {"repo_id", text_or_null(view.repo_id)},
              {"commit", text_or_null(view.commit)},
              {"variant", text_or_null(view.variant)},
              {"variants", view.variants},
              {"without_libraries", view.without_libraries},
              {"name", metadata ? Json(metadata->name) : Json()},
              {"id", metadata ? Json(metadata->id) : Json()},
              {"backend", metadata ? Json(target::backend_type_name(metadata->backend)) : Json()},
              {"declared_archs", metadata ? Json(metadata->archs) : Json::array()},
              {"archs", inspection.archs},
              {"archs_complete", inspection.archs_complete},
              {"problems", problems_json(inspection.problems)}};
    json["operators"] = Json::array();
    for (const auto& op : inspection.operators) json["operators"].push_back(operator_json(op));
    json["operators_complete"] = inspection.operators_complete && !view.without_libraries;
    json["tuning"] = tuning_json(view);
    json["functions"] = Json::array();
    for (const auto& one : inspection.functions) json["functions"].push_back(function_json(one));
    json["layers"] = Json::array();
    for (const auto& one : inspection.layers) json["layers"].push_back(layer_json(one));
    json["libraries"] = Json::array();
    json["needs"] = Json::array();
    json["symbols"] = Json::array();
    for (const auto& library : inspection.build.libraries) {
        Json one = library_json(library.path, library.library, symbols);
        for (auto& symbol : one["symbols"]) {
            symbol["library"] = one["path"];
            json["symbols"].push_back(std::move(symbol));
        }
        one.erase("symbols");
        for (const auto& name : one["needs"]) {
            if (std::find(json["needs"].begin(), json["needs"].end(), name) ==
                json["needs"].end()) {
                json["needs"].push_back(name);
            }
        }
        json["libraries"].push_back(std::move(one));
    }
    return json;
}

}  // namespace twinkle::cli
