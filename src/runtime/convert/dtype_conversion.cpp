#include "runtime/convert/dtype_conversion.h"

#include "base/text.h"
#include "runtime/convert/dtype_flow.h"
#include "runtime/convert/dtype_rewriting.h"
#include "runtime/graph/dtype_rules.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/model/inputs.h"
#include "twinkle/error.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

[[noreturn]] void refuse(const DtypeFlow& flow, at::ScalarType to) {
    std::set<std::string> places;
    for (const auto& [node, conflict] : flow.conflicts) {
        places.insert(conflict.first);
    }
    std::vector<std::string> some(places.begin(), places.end());
    some.resize(std::min<std::size_t>(some.size(), 3));
    throw Error(ErrorCode::refused,
                {.what = "the model cannot be converted to " + dtype_name(to),
                 .where = "",
                 .why = "with such weights operators would get tensors of several dtypes: " +
                        base::join(some, ", ") + (places.size() > 3 ? ", …" : ""),
                 .hint = "convert it before it is traced"});
}

}  // namespace

at::ScalarType floating_dtype(const std::string& name) {
    for (const auto dtype : {at::kBFloat16, at::kHalf, at::kFloat}) {
        if (dtype_name(dtype) == name) {
            return dtype;
        }
    }
    throw Error(ErrorCode::malformed, {.what = "a model cannot be converted to the dtype \"" +
                                               base::printable(name) + "\"",
                                       .where = "",
                                       .why = "it is one of bfloat16, float16, float32",
                                       .hint = ""});
}

std::set<at::ScalarType> weight_dtypes(const jit::Module& model) {
    std::set<at::ScalarType> dtypes;
    const auto add = [&](const at::Tensor& tensor) {
        if (tensor.defined() && is_floating(tensor.scalar_type())) {
            dtypes.insert(tensor.scalar_type());
        }
    };
    for (const at::Tensor& parameter : model.parameters()) {
        add(parameter);
    }
    if (!dtypes.empty()) {
        return dtypes;  // buffers may be float32 on purpose
    }
    for (const at::Tensor& buffer : model.buffers()) {
        add(buffer);
    }
    for (const auto& graph : graphs_of(model)) {
        for_each_node_and_forked(graph->block(), [&](const jit::Node* node) {
            if (is_weight_constant(node)) {
                add(node->t(c10::attr::value));
            }
        });
    }
    return dtypes;
}

ConstantReport convert_dtype(jit::Module& model, at::ScalarType to) {
    const DtypeSettings settings{to, weight_dtypes(model)};
    if (settings.from.empty() || settings.from == std::set{to}) {
        return {};
    }
    DtypeFlow flow = dtype_flow(model, settings);
    if (!flow.conflicts.empty()) {
        refuse(flow, to);
    }
    return rewrite_dtypes(model, settings, flow);
}

ConstantReport dtype_constants(const jit::Module& model) {
    ConstantReport report;
    const auto from = weight_dtypes(model);
    if (from.empty()) {
        return report;
    }
    const at::ScalarType other = from.contains(at::kFloat) ? at::kBFloat16 : at::kFloat;
    const DtypeFlow flow = dtype_flow(model, {other, from});
    const auto names = method_names(model);
    const auto count = [&](const jit::Node* node) {
        const auto name = names.find(node->owningGraph());
        ++report.methods[name == names.end() ? "a function" : name->second];
        ++report.found;
    };
    for (const auto& [place, meaning] : flow.constants) {
        if (meaning == DtypeMeaning::weights) {
            count(place.first);
        }
    }
    for (const jit::Value* value : flow.rounded) {
        count(value->node());
    }
    if (report.found > 0) {
        std::vector<std::string> dtypes;
        for (const auto dtype : from) {
            dtypes.push_back(dtype_name(dtype));
        }
        report.named = dtypes;
    }
    return report;
}

void round_weights(jit::Module& model, at::ScalarType dtype) {
    const torch::NoGradGuard no_grad;
    const auto round = [&](const at::Tensor& tensor) {
        if (tensor.defined() && is_floating(tensor.scalar_type())) {
            tensor.set_data(tensor.detach().to(dtype).to(tensor.scalar_type()));
        }
    };
    for (const at::Tensor& parameter : model.parameters()) {
        round(parameter);
    }
    for (const auto& graph : graphs_of(model)) {
        for_each_node_and_forked(graph->block(), [&](const jit::Node* node) {
            if (is_weight_constant(node)) {
                const at::Tensor& weight = node->t(c10::attr::value);
                const_cast<jit::Node*>(node)->t_(c10::attr::value,
                                                 weight.to(dtype).to(weight.scalar_type()));
            }
        });
    }
}

}  // namespace twinkle::runtime
