#pragma once
// Small archives of torch.export, written down part by part: what no exporter writes, too.

#include "base/json.h"
#include "stored_zip.h"
#include "torchscript.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace twinkle::tests {

inline base::Json sizes_of(const std::vector<std::int64_t>& sizes) {
    base::Json list = base::Json::array();
    for (const std::int64_t size : sizes) {
        list.push_back({{"as_int", size}});
    }
    return list;
}

// Of float32, contiguous.
inline base::Json meta_of(const std::vector<std::int64_t>& sizes) {
    std::vector<std::int64_t> strides(sizes.size(), 1);
    for (std::size_t i = sizes.size(); i-- > 1;) {
        strides[i - 1] = strides[i] * sizes[i];
    }
    return {{"dtype", 7},
            {"sizes", sizes_of(sizes)},
            {"strides", sizes_of(strides)},
            {"storage_offset", {{"as_int", 0}}},
            {"device", {{"type", "cpu"}, {"index", nullptr}}},
            {"requires_grad", false},
            {"layout", 7}};
}

inline base::Json tensor(const std::string& name) {
    return {{"as_tensor", {{"name", name}}}};
}

inline base::Json tensors(const std::vector<std::string>& names) {
    base::Json list = base::Json::array();
    for (const std::string& name : names) {
        list.push_back({{"name", name}});
    }
    return {{"as_tensors", list}};
}

// Nestings of values.
inline base::Json leaf() {
    return {{"type", nullptr}, {"context", nullptr}, {"children_spec", base::Json::array()}};
}
inline base::Json tuple(const base::Json& children) {
    return {{"type", "builtins.tuple"}, {"context", "null"}, {"children_spec", children}};
}
inline base::Json dict(const std::vector<std::string>& keys, const base::Json& children) {
    return {{"type", "builtins.dict"},
            {"context", base::Json(keys).dump()},
            {"children_spec", children}};
}

// A model with one output; x, float32[2, 4], is its first input unless it is told otherwise.
class ExportedProgram {
public:
    ExportedProgram() {
        add_tensor("x", {2, 4});
        inputs.push_back({{"user_input", {{"arg", tensor("x")}}}});
    }

    void add_tensor(const std::string& name, const std::vector<std::int64_t>& sizes) {
        tensor_values[name] = meta_of(sizes);
    }
    // `stack` is of calls of modules: "key,path,class;…".
    void add_node(const std::string& target, const base::Json& arguments, const base::Json& outputs,
                  const std::string& stack = "") {
        base::Json metadata = base::Json::object();
        if (!stack.empty()) {
            metadata["nn_module_stack"] = stack;
        }
        nodes.push_back({{"target", target},
                         {"inputs", arguments},
                         {"outputs", outputs},
                         {"metadata", metadata}});
    }
    // out = x ⊕ x, float32[2, 4].
    void add_sum(const std::string& of, const std::string& out, const std::string& stack = "") {
        add_tensor(out, {2, 4});
        add_node("torch.ops.aten.add.Tensor",
                 base::Json::array({{{"name", "self"}, {"arg", tensor(of)}},
                                    {{"name", "other"}, {"arg", tensor(of)}}}),
                 base::Json::array({tensor(out)}), stack);
    }
    // A parameter of ones, float32[4], under all of these paths.
    void add_parameter(const std::vector<std::string>& paths) {
        const std::string value = "p_" + std::to_string(weights.size());
        add_tensor(value, {4});
        const base::Json input = {
            {"parameter", {{"arg", {{"name", value}}}, {"parameter_name", paths.front()}}}};
        inputs.insert(inputs.begin(), input);
        const std::string record = "weight_" + std::to_string(records.size());
        for (const std::string& path : paths) {
            weights[path] = {{"path_name", record},
                             {"is_param", true},
                             {"use_pickle", false},
                             {"tensor_meta", meta_of({4})}};
        }
        const std::vector<float> ones(4, 1.0F);
        records.emplace_back("model/data/weights/" + record,
                             std::string(reinterpret_cast<const char*>(ones.data()), 16));
    }

    std::string bytes(const std::string& result) const {
        base::Json graph_inputs = base::Json::array();
        for (const base::Json& input : inputs) {
            const base::Json& arg = input.begin().value().at("arg");
            graph_inputs.push_back(arg.contains("name") ? base::Json{{"as_tensor", arg}} : arg);
        }
        const base::Json in_spec =
            tuple(base::Json::array({positional, dict({}, base::Json::array())}));
        const base::Json program = {
            {"schema_version", {{"major", 8}, {"minor", 20}}},
            {"range_constraints", base::Json::object()},
            {"guards_code", guards},
            {"graph_module",
             {{"graph",
               {{"inputs", graph_inputs},
                {"outputs", base::Json::array({tensor(result)})},
                {"nodes", nodes},
                {"tensor_values", tensor_values}}},
              {"signature",
               {{"input_specs", inputs},
                {"output_specs",
                 base::Json::array({{{"user_output", {{"arg", tensor(result)}}}}})}}},
              {"module_call_graph",
               base::Json::array({{{"fqn", ""},
                                   {"signature",
                                    {{"in_spec", base::Json::array({1, in_spec}).dump()},
                                     {"out_spec", base::Json::array({1, leaf()}).dump()}}}}})}}}};
        Records all = records;
        all.emplace_back("model/models/model.json", program.dump());
        all.emplace_back("model/data/weights/model_weights_config.json",
                         base::Json{{"config", weights}}.dump());
        return zip_of(all);
    }

    base::Json tensor_values = base::Json::object();
    base::Json inputs = base::Json::array();
    base::Json nodes = base::Json::array();
    base::Json guards = base::Json::array();
    base::Json positional = tuple(base::Json::array({leaf()}));
    base::Json weights = base::Json::object();
    Records records;
};

}  // namespace twinkle::tests
