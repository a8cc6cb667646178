#include "runtime/exported/read_program.h"

#include "archive/json_reader.h"
#include "base/file.h"
#include "base/text.h"
#include "runtime/exported/read_arguments.h"
#include "runtime/exported/tokens.h"
#include "twinkle/error.h"

#include <algorithm>
#include <set>

namespace twinkle::runtime::exported {

using namespace archive;
using base::Json;

namespace {

constexpr std::int64_t known_schema = 8;
constexpr base::JsonLimits program_limits{.bytes = 512u << 20, .depth = 256};

Argument tensor_named(const Json& spec) {
    Argument value;
    value.kind = Argument::Kind::tensor;
    value.text = text_at(object_at(spec, "arg"), "name");
    return value;
}

[[noreturn]] void refuse_kind(const std::string& place, const std::string& kind) {
    throw InvalidJson("its " + place + " is a " + base::printable(kind) +
                          ", which TorchScript has no counterpart of",
                      "export the model without it");
}

InputSpec read_input(const Json& json) {
    const Choice choice = choice_of(json);
    using Kind = InputSpec::Kind;
    if (choice.name == "user_input") {
        const Json& arg = member(choice.value, "arg");
        InputSpec spec{Kind::user, read_argument(arg), ""};
        if (spec.value.kind == Argument::Kind::object) {
            spec.class_name = text_at(choice_of(arg).value, "class_fqn");
        }
        return spec;
    }
    if (choice.name == "constant_input") {
        return {Kind::constant, read_argument(member(choice.value, "value")), ""};
    }
    if (choice.name == "parameter") {
        return {Kind::parameter, tensor_named(choice.value),
                text_at(choice.value, "parameter_name")};
    }
    if (choice.name == "buffer") {
        return {Kind::buffer, tensor_named(choice.value), text_at(choice.value, "buffer_name")};
    }
    if (choice.name == "tensor_constant") {
        return {Kind::tensor_constant, tensor_named(choice.value),
                text_at(choice.value, "tensor_constant_name")};
    }
    if (choice.name == "custom_obj") {
        InputSpec spec{Kind::object, {}, text_at(choice.value, "custom_obj_name")};
        const Json& arg = object_at(choice.value, "arg");
        spec.value.kind = Argument::Kind::object;
        spec.value.text = text_at(arg, "name");
        spec.class_name = text_at(arg, "class_fqn");
        return spec;
    }
    if (choice.name == "token") {
        return {Kind::token, tensor_named(choice.value), ""};
    }
    refuse_kind("input", choice.name);
}

OutputSpec read_output(const Json& json) {
    const Choice choice = choice_of(json);
    using Kind = OutputSpec::Kind;
    if (choice.name == "user_output") {
        return {Kind::user, read_argument(member(choice.value, "arg")), ""};
    }
    if (choice.name == "loss_output") {
        return {Kind::user, tensor_named(choice.value), ""};
    }
    if (choice.name == "buffer_mutation") {
        return {Kind::buffer_mutation, tensor_named(choice.value),
                text_at(choice.value, "buffer_name")};
    }
    if (choice.name == "parameter_mutation") {
        return {Kind::parameter_mutation, tensor_named(choice.value),
                text_at(choice.value, "parameter_name")};
    }
    if (choice.name == "user_input_mutation") {
        return {Kind::input_mutation, tensor_named(choice.value),
                text_at(choice.value, "user_input_name")};
    }
    if (choice.name == "token") {
        return {Kind::token, tensor_named(choice.value), ""};
    }
    refuse_kind("output", choice.name);
}

void read_calls(const Json& calls, Program& program) {
    for (const Json& call : list_of(calls)) {
        const std::string path = text_at(call, "fqn");
        const Json* signature = optional_member(call, "signature");
        if (!path.empty()) {
            program.modules.push_back(path);
        } else if (signature != nullptr) {
            program.in_spec = text_at(*signature, "in_spec");
            program.out_spec = text_at(*signature, "out_spec");
            if (const Json* names = optional_member(*signature, "forward_arg_names")) {
                for (const Json& name : list_of(*names)) {
                    program.argument_names.push_back(text_of(name));
                }
            }
        }
    }
}

Range read_range(const Json& json) {
    Range range;
    if (const Json* min = optional_member(json, "min_val")) {
        range.min = integer_of(*min);
    }
    if (const Json* max = optional_member(json, "max_val")) {
        range.max = integer_of(*max);
    }
    return range;
}

Program read_document(const Json& json) {
    Program program;
    const std::int64_t major = integer_at(object_at(json, "schema_version"), "major");
    if (const Json* version = optional_member(json, "torch_version")) {
        program.torch_version = text_of(*version);
    }
    if (major != known_schema) {
        throw InvalidJson("its schema is " + std::to_string(major) + ", and this twinkle knows " +
                          std::to_string(known_schema));
    }
    const Json& module = object_at(json, "graph_module");
    program.graph = read_graph(object_at(module, "graph"));
    const Json& signature = object_at(module, "signature");
    for (const Json& input : list_at(signature, "input_specs")) {
        program.inputs.push_back(read_input(input));
    }
    for (const Json& output : list_at(signature, "output_specs")) {
        program.outputs.push_back(read_output(output));
    }
    read_calls(member(module, "module_call_graph"), program);
    if (const Json* tuples = optional_member(module, "treespec_namedtuple_fields")) {
        for (const auto& [type, definition] : tuples->items()) {
            for (const Json& field : list_at(definition, "field_names")) {
                program.namedtuple_fields[type].push_back(text_of(field));
            }
        }
    }
    for (const auto& [symbol, range] : object_at(json, "range_constraints").items()) {
        program.ranges[symbol] = read_range(range);
    }
    if (const Json* guards = optional_member(json, "guards_code")) {
        for (const Json& guard : list_of(*guards)) {
            program.guards.push_back(text_of(guard));
        }
    }
    return program;
}

// Every value is defined once, before it is used, and its kind is known.
class Definitions {
public:
    void define(const Argument& value, const Graph& graph) {
        if (value.kind == Argument::Kind::list) {
            for (const Argument& item : value.items) {
                define(item, graph);
            }
        } else if (value.is_value()) {
            if (value.kind == Argument::Kind::tensor && !graph.tensors.contains(value.text)) {
                throw InvalidJson("nothing is said of the tensor " + base::printable(value.text));
            }
            if (value.text.find('.') != std::string::npos) {  // as what is flattened is called
                throw InvalidJson("the value " + base::printable(value.text) +
                                  " has no plain name");
            }
            if (!names_.insert(value.text).second) {
                throw InvalidJson("the value " + base::printable(value.text) + " is defined twice");
            }
        }
    }

    void use(const Argument& value) const {
        if (value.is_value() && !names_.contains(value.text)) {
            throw InvalidJson("the value " + base::printable(value.text) + " is not defined");
        }
        for (const Argument& item : value.items) {
            use(item);
        }
        if (value.graph) {
            Definitions inner;
            for (const Argument& input : value.graph->inputs) {
                inner.define(input, *value.graph);
            }
            inner.check(*value.graph);
        }
    }

    void check(const Graph& graph) {
        for (const Node& node : graph.nodes) {
            for (const NamedArgument& input : node.inputs) {
                use(input.value);
            }
            for (const Argument& output : node.outputs) {
                define(output, graph);
            }
        }
        for (const Argument& output : graph.outputs) {
            use(output);
        }
    }

private:
    std::set<std::string> names_;
};

void check_program(const Program& program) {
    Definitions definitions;
    for (const InputSpec& input : program.inputs) {
        if (input.kind != InputSpec::Kind::constant) {
            definitions.define(input.value, program.graph);
        }
    }
    definitions.check(program.graph);
    for (const OutputSpec& output : program.outputs) {
        definitions.use(output.value);
    }
}

}  // namespace

std::string chosen_model(const Archive& archive, const std::string& model) {
    const auto models = archive.models();
    if (models.empty()) {
        refuse_archive(archive.file(), "it holds no model", "");
    }
    if (model.empty() && models.size() == 1) {
        return models.front();
    }
    if (model.empty() || std::find(models.begin(), models.end(), model) == models.end()) {
        throw Error(ErrorCode::not_found,
                    {.what = model.empty() ? "the archive holds several models"
                                           : "the archive has no model " + base::printable(model),
                     .where = base::display_path(archive.file()),
                     .why = "it has " + base::printable(base::join(models, ", ")),
                     .hint = "name one of them with --model"});
    }
    return model;
}

Program read_program(const Archive& archive, const std::string& model) {
    const std::string record = "models/" + chosen_model(archive, model) + ".json";
    const std::string origin = base::display_path(archive.file()) + "/" + base::printable(record);
    try {
        Program program = read_document(
            base::parse_json(archive.text(record, program_limits.bytes), origin, program_limits));
        check_program(program);
        remove_tokens(program);
        return program;
    } catch (const InvalidJson& invalid) {
        throw Error(ErrorCode::malformed,
                    {.what = "the exported program cannot be read",
                     .where = origin,
                     .why = invalid.what(),
                     .hint = !invalid.hint().empty()
                                 ? invalid.hint()
                                 : "export it with PyTorch 2.9 or newer, or copy it again"});
    }
}

}  // namespace twinkle::runtime::exported
