#include "kernel/compiled_operator.h"

#include "archive/archive.h"
#include "archive/json_reader.h"
#include "base/file.h"
#include "base/text.h"
#include "kernel/schema.h"
#include "twinkle/error.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace twinkle::kernel {

using archive::InvalidJson;
using base::Json;

namespace {

constexpr const char* metadata_key = "twinkle";
constexpr std::size_t most_parameters = 64;
constexpr std::size_t most_dimensions = 16;
constexpr std::size_t most_results = 64;
constexpr base::JsonLimits operator_limits{.bytes = 1u << 20, .depth = 8};
const std::array<std::string, 9> dtypes{"float32", "float64", "float16", "bfloat16", "int8",
                                        "uint8",   "int32",   "int64",   "bool"};

std::string_view trimmed(std::string_view text) {
    const auto from = std::min(text.find_first_not_of(' '), text.size());
    return text.substr(from, text.find_last_not_of(' ') + 1 - from);
}

// "Tensor x, float eps" of "rms_norm(Tensor x, float eps) -> Tensor".
std::vector<CompiledParameter> parameters_of(std::string_view schema) {
    const auto open = schema.find('(');
    const auto close = schema.find(')');
    const std::string inside(schema.substr(open + 1, close - open - 1));
    std::vector<CompiledParameter> parameters;
    for (const std::string& part : base::split(inside, ',')) {
        const std::string_view text = trimmed(part);
        const auto space = text.find(' ');
        CompiledParameter parameter;
        parameter.type = text.substr(0, space);
        parameter.name = space == std::string_view::npos ? "" : text.substr(space + 1);
        const bool known = parameter.type == "Tensor" || parameter.type == "float" ||
                           parameter.type == "int" || parameter.type == "bool";
        if (!known || !std::all_of(parameter.name.begin(), parameter.name.end(), is_word)) {
            throw InvalidJson("a parameter of its operator is " + base::printable(text) +
                              ", and a package takes tensors, and was compiled for values of "
                              "float, int and bool");
        }
        parameters.push_back(std::move(parameter));
    }
    if (parameters.empty() || parameters.size() > most_parameters ||
        !parameters.front().is_tensor()) {
        throw InvalidJson("the first parameter of its operator is no tensor");
    }
    return parameters;
}

// "Tensor" or "(Tensor, Tensor)".
std::size_t results_of(std::string_view schema) {
    std::string_view returns = trimmed(schema.substr(schema.find("->") + 2));
    if (returns == "Tensor") {
        return 1;
    }
    if (returns.starts_with("(") && returns.ends_with(")")) {
        const auto parts = base::split(std::string(returns.substr(1, returns.size() - 2)), ',');
        if (parts.size() > 1 && parts.size() <= most_results &&
            std::all_of(parts.begin(), parts.end(),
                        [](const auto& part) { return trimmed(part) == "Tensor"; })) {
            return parts.size();
        }
    }
    throw InvalidJson("its operator returns " + base::printable(returns) +
                      ", and a package returns one tensor or a tuple of them");
}

CompiledOperator operator_of(const std::string& text) {
    const auto schema = parse_schema(text);
    if (!schema || !schema->op_namespace.empty() || schema->name.find('.') != std::string::npos ||
        !schema->mutates.empty()) {
        throw InvalidJson(
            "\"operator\" is no schema of an operator without a namespace that "
            "changes none of its arguments: " +
            base::printable(text.substr(0, 200)));
    }
    return {schema->name, schema->text, parameters_of(schema->text), results_of(schema->text), {}};
}

AttributeValue constant_of(const CompiledParameter& parameter, const Json& value) {
    if (parameter.type == "bool") {
        return archive::boolean_of(value);
    }
    if (parameter.type == "int") {
        return archive::integer_of(value);
    }
    return archive::number_of(value);
}

class OperatorReader {
public:
    explicit OperatorReader(const Json& json) : json_(json) {}

    CompiledOperator read() {
        CompiledOperator op = operator_of(archive::text_at(json_, "operator"));
        read_ranges();
        const Json& inputs = archive::list_at(json_, "inputs");
        std::size_t next = 0;
        for (CompiledParameter& parameter : op.parameters) {
            if (!names_.insert(parameter.name).second) {
                throw InvalidJson("its operator has two parameters " + parameter.name);
            }
            if (!parameter.is_tensor()) {
                read_constant(parameter);
            } else if (next < inputs.size()) {
                read_tensor(parameter, inputs[next++]);
            } else {
                throw InvalidJson("\"inputs\" has fewer entries than its operator has tensors");
            }
        }
        if (next != inputs.size()) {
            throw InvalidJson("\"inputs\" has more entries than its operator has tensors");
        }
        read_attributes(op);
        return op;
    }

private:
    void read_ranges() {
        const Json* sizes = archive::optional_member(json_, "sizes");
        if (sizes == nullptr) {
            return;
        }
        archive::object_at(json_, "sizes");
        for (const auto& [name, range] : sizes->items()) {
            const Json& ends = archive::list_of(range);
            CompiledSize size{name, 0, 0};
            if (ends.size() == 2) {
                size.least = archive::integer_of(ends[0]);
                size.most = archive::integer_of(ends[1]);
            }
            if (name.empty() || !std::all_of(name.begin(), name.end(), is_word) || size.least < 0 ||
                size.most < std::max<std::int64_t>(size.least, 1)) {
                throw InvalidJson("the size " + base::printable(name) +
                                  " has no range of two numbers");
            }
            ranges_.emplace(name, size);
        }
    }

    void read_tensor(CompiledParameter& parameter, const Json& input) const {
        parameter.dtype = archive::text_at(input, "dtype");
        if (std::find(dtypes.begin(), dtypes.end(), parameter.dtype) == dtypes.end()) {
            throw InvalidJson("the dtype of " + parameter.name + " is " +
                              base::printable(parameter.dtype) + "; there are " +
                              base::join(dtypes, ", "));
        }
        const Json& sizes = archive::list_at(input, "sizes");
        if (sizes.size() > most_dimensions) {
            throw InvalidJson(parameter.name + " has too many dimensions");
        }
        for (const Json& size : sizes) {
            parameter.sizes.push_back(size_of(parameter, size));
        }
    }

    CompiledSize size_of(const CompiledParameter& parameter, const Json& size) const {
        if (size.is_string()) {
            const auto found = ranges_.find(size.get<std::string>());
            if (found == ranges_.end()) {
                throw InvalidJson("\"sizes\" has no range of " +
                                  base::printable(size.get<std::string>()) + ", a size of " +
                                  parameter.name);
            }
            return found->second;
        }
        const std::int64_t fixed = archive::integer_of(size);
        if (fixed < 0) {
            throw InvalidJson("a size of " + parameter.name + " is negative");
        }
        return {"", fixed, fixed};
    }

    void read_constant(CompiledParameter& parameter) const {
        archive::object_at(json_, "constants");
        const Json* value = archive::optional_member(json_.at("constants"), parameter.name.c_str());
        if (value == nullptr) {
            throw InvalidJson("\"constants\" has no value of " + parameter.name +
                              ", which is no tensor");
        }
        parameter.constant = constant_of(parameter, *value);
    }

    void read_attributes(CompiledOperator& op) const {
        const Json* attributes = archive::optional_member(json_, "attributes");
        if (attributes == nullptr) {
            return;
        }
        for (const Json& attribute : archive::list_of(*attributes)) {
            op.attributes.push_back(archive::text_of(attribute));
            if (!names_.contains(op.attributes.back())) {
                throw InvalidJson("\"attributes\" names " + base::printable(op.attributes.back()) +
                                  ", which is no parameter of its operator");
            }
        }
    }

    const Json& json_;
    std::map<std::string, CompiledSize> ranges_;
    std::set<std::string> names_;
};

[[noreturn]] void refuse(const std::string& shown, const std::string& why,
                         const std::string& hint) {
    throw Error(
        ErrorCode::malformed,
        {.what = "the package cannot be a kernel", .where = shown, .why = why, .hint = hint});
}

// What libtwinkle runs is one library from memory, without files beside it.
void require_one_library(const archive::CompiledPackage& package, const std::string& shown) {
    const archive::CompiledModel& model = package.models.front();
    if (package.models.size() > 1 || model.libraries.size() != 1) {
        refuse(shown,
               "it has " + std::to_string(package.models.size()) + " models and " +
                   std::to_string(model.libraries.size()) + " libraries",
               "compile one function into it");
    }
    if (model.gpu_code_bytes > 0) {
        refuse(shown, "its GPU code lies beside its library",
               "compile it with \"aot_inductor.embed_kernel_binary\": True");
    }
    if (package.weight_bytes > 0) {
        refuse(shown, "it has weights beside its library",
               "make weights inputs of the function that is compiled");
    }
    if (!model.operators.empty()) {
        refuse(shown, "it calls " + base::printable(model.operators.begin()->first) + " by name",
               "compile a function whose operators Inductor generates or has a C function for");
    }
    if (model.made_for.device != "cpu" && model.made_for.device != "cuda") {
        refuse(shown, "it is compiled for " + base::printable(model.made_for.device),
               "there are cpu and cuda");
    }
}

std::string text_of_size(const CompiledSize& size) {
    return size.name.empty()
               ? std::to_string(size.least)
               : size.name + ": " + std::to_string(size.least) + " to " + std::to_string(size.most);
}

std::string text_of_constant(const AttributeValue& value) {
    return base::json_line(std::visit([](const auto& one) { return Json(one); }, value));
}

}  // namespace

CompiledOperator parse_compiled_operator(std::string_view json) {
    Json parsed;
    try {
        parsed = base::parse_json(json, metadata_key, operator_limits);
    } catch (const Error& error) {
        throw InvalidJson("what it says of its operator is no JSON: " + error.details().why);
    }
    return OperatorReader(parsed).read();
}

std::optional<OperatorPackage> read_operator_package(const std::filesystem::path& file,
                                                     const std::string& shown) {
    if (archive::kind_of_archive(file) != archive::ArchiveKind::compiled) {
        return std::nullopt;
    }
    archive::CompiledPackage package;
    try {
        package = archive::read_package(file);
    } catch (const Error& error) {
        refuse(shown, error.details().why, error.details().hint);
    }
    archive::CompiledModel& model = package.models.front();
    const auto text = model.metadata.find(metadata_key);
    if (text == model.metadata.end()) {
        return std::nullopt;
    }
    require_one_library(package, shown);
    try {
        CompiledOperator op = parse_compiled_operator(text->second);
        return OperatorPackage{std::move(model), std::move(op)};
    } catch (const InvalidJson& invalid) {
        refuse(shown, invalid.what(), "script/compile_kernel.py writes this metadata");
    }
}

std::string compiled_for_text(const CompiledOperator& op) {
    std::vector<std::string> parts;
    for (const CompiledParameter& parameter : op.parameters) {
        if (!parameter.is_tensor()) {
            parts.push_back(parameter.name + " = " + text_of_constant(*parameter.constant));
            continue;
        }
        std::vector<std::string> sizes;
        std::transform(parameter.sizes.begin(), parameter.sizes.end(), std::back_inserter(sizes),
                       text_of_size);
        parts.push_back(parameter.dtype + "[" + base::join(sizes, ", ") + "]");
    }
    return base::join(parts, ", ");
}

}  // namespace twinkle::kernel
