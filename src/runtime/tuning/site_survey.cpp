#include "runtime/tuning/site_survey.h"

#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "runtime/graph/class_name.h"
#include "runtime/graph/format.h"
#include "runtime/graph/forward_methods.h"
#include "runtime/graph/sites.h"
#include "runtime/verify/call_recorder.h"
#include "runtime/verify/contest_times.h"
#include "runtime/verify/originals.h"
#include "runtime/verify/sized_calls.h"
#include "tuning/json_reading.h"
#include "twinkle/call_key.h"

#include <ATen/Parallel.h>
#include <torch/csrc/jit/passes/canonicalize.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/shape_analysis.h>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using base::Json;

// The same for the same code, wherever in whichever model it stands.
std::string text_of(jit::Function& method) {
    auto graph = jit::toGraphFunction(method).graph()->copy();
    jit::Inline(*graph);
    jit::EraseShapeInformation(graph);
    return without_mangling(jit::Canonicalize(graph, false)->toString(false));
}

bool is_setting(const c10::IValue& value) {
    return value.isBool() || value.isInt() || value.isDouble() || value.isString();
}

std::string content_of(const jit::Module& module) {
    std::string text;
    for (jit::Function* method : forward_methods(module.type())) {
        text += method->name() + text_of(*method);
    }
    for (const Instance& instance : instances_of(module)) {
        for (const auto& attribute : instance.module.named_attributes(false)) {
            const c10::IValue& value = attribute.value;
            text += fmt::format("{}.{} ", instance.path, attribute.name);
            if (value.isTensor() && value.toTensor().defined()) {
                text += fmt::format("{}[{}]", c10::toString(value.toTensor().scalar_type()),
                                    fmt::join(value.toTensor().sizes(), ","));
            } else if (is_setting(value)) {
                text += c10::str(value);
            }
            text += '\n';
        }
    }
    return base::sha256_hex(text);
}

// Floating-point numbers choose no kernel. A weight counts exactly: it tells layers apart.
AbstractInput abstract_value(const c10::IValue& value, const ModelWeights& weights) {
    if (value.isTensor()) {
        AbstractInput input = abstract_input(value.toTensor());
        if (weights.has(value.toTensor())) {
            input.sizes = value.toTensor().sizes().vec();
        }
        return input;
    }
    return {.dtype = value.isNone()     ? "none"
                     : value.isBool()   ? "bool"
                     : value.isInt()    ? "int"
                     : value.isDouble() ? "float"
                     : value.isString() ? "str"
                                        : without_mangling(value.type()->repr_str()),
            .value = is_setting(value) && !value.isDouble() ? c10::str(value) : ""};
}

Json call_json(const Inputs& inputs, const ModelWeights& weights) {
    Invocation invocation{.operation = "call"};
    Json extents = Json::array();
    for (const c10::IValue& value : inputs.positional) {
        invocation.inputs.push_back(abstract_value(value, weights));
        const bool tensor = value.isTensor() && value.toTensor().defined();
        const auto sizes = tensor ? value.toTensor().sizes().vec() : std::vector<std::int64_t>();
        extents.push_back({tensor ? value.toTensor().numel() : -1,
                           sizes.empty() ? std::int64_t{1} : sizes.back()});
    }
    return {{"inputs", invocation.key()}, {"extents", extents}};
}

SurveyedCall call_of(const Json& json) {
    SurveyedCall call;
    call.inputs = Invocation::from_key(json.at("inputs").get<std::string>()).inputs;
    for (const Json& extent : json.at("extents")) {
        call.extents.push_back(
            {extent.at(0).get<std::int64_t>(), extent.at(1).get<std::int64_t>()});
    }
    call.size = base::printable(json.at("size").get<std::string>());
    call.tuned = json.at("tuned").get<bool>();
    return call;
}

// Runs in the child. Sends {"fatal"}, or {"trying"} and {"sizes"} (sized_calls.h), {"site"} for
// each and {"threads"} with {"cold"}.
void survey(const VerificationContext& given, const jit::Module& made,
            const std::vector<std::string>& sites, const Send& send) {
    const torch::NoGradGuard no_grad;
    const VerificationContext context = in_place(given);
    const jit::Module kernelized = in_place(made, context);
    const jit::Module recorded = open_original(context, sites);
    CallRecorder recorder(recorded, sites, inlined_sites(kernelized, recorded, sites));
    const auto recordings = record_calls(recorder, context, send);
    if (!recordings) {
        return;
    }
    const jit::Module original = open_original(context, sites);
    const InlinedSites inlined = inlined_sites(kernelized, original, sites);
    for (const std::string& site : sites) {
        Json calls = Json::array();
        for (const SizedCalls& sized : calls_of(site, *recordings)) {
            for (const auto& [method, inputs] : sized.calls) {
                Json call = call_json(inputs, recorder.weights());
                call.update({{"size", sized.size}, {"tuned", sized.tuned}});
                calls.push_back(std::move(call));
            }
        }
        send(base::json_line({{"site", site},
                              {"content", content_of(site_of(original, inlined, site))},
                              {"calls", std::move(calls)}}));
    }
    send(base::json_line({{"threads", at::get_num_threads()},
                          {"cold", come_from_memory(recorder.weights(), context)}}));
}

// What a child has sent.
struct Answer {
    Survey survey;
    SizesTried sizes;

    void take(std::string_view line) {
        const Json json = base::parse_json(line, "survey");
        if (sizes.take(json)) {
            return;
        }
        if (json.contains("threads")) {
            survey.threads = json["threads"].get<int>();
            survey.cold = json.at("cold").get<bool>();
        } else if (json.contains("site")) {
            SurveyedSite& site = survey.sites[json["site"].get<std::string>()];
            site.content = base::printable(json.at("content").get<std::string>());
            for (const Json& call : json.at("calls")) {
                site.calls.push_back(call_of(call));
            }
        }
    }
};

}  // namespace

Survey survey_sites(const VerificationContext& given, const jit::Module& kernelized,
                    const std::vector<std::string>& sites) {
    VerificationContext context = given;
    while (true) {
        Answer answer;
        const SandboxOutcome outcome = run_in_sandbox(
            context.limits, [&](const Send& send) { survey(context, kernelized, sites, send); },
            [&](std::string_view line) { answer.take(line); });
        if (answer.sizes.drop_crashed(context.sizes)) {
            continue;
        }
        if (answer.sizes.fatal || !outcome.finished || answer.survey.threads < 1) {
            inputs_do_not_fit(
                context, answer.sizes.fatal.value_or(outcome.finished ? "it ended without an answer"
                                                                      : outcome.why));
        }
        answer.survey.sizes = sizes_chosen(context.sizes, answer.sizes.accepted);
        return std::move(answer.survey);
    }
}

}  // namespace twinkle::runtime
