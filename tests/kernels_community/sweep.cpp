// Compiles every layer of one package onto a host with guessed attributes; sweep.py writes the job
// and reads the answer. The operators of the package are faked from their schemas.
//
//   layer_sweep JOB.json > ANSWER.json

#include "base/json.h"
#include "runtime/kernels/op_library.h"
#include "runtime/source/layer_compiler.h"
#include "runtime/source/package_values.h"

#include <torch/library.h>
#include <torch/script.h>

#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

using twinkle::base::Json;
namespace runtime = twinkle::runtime;

namespace {

c10::TypePtr type_of(const std::string& kind) {
    static const std::map<std::string, c10::TypePtr> types = {
        {"tensor", c10::TensorType::get()},
        {"float", c10::FloatType::get()},
        {"int", c10::IntType::get()},
        {"bool", c10::BoolType::get()},
        {"str", c10::StringType::get()},
        {"tensors", c10::TupleType::create({c10::TensorType::get(), c10::TensorType::get()})},
        {"optional", c10::OptionalType::ofTensor()},
        {"ints", c10::ListType::ofInts()}};
    const auto known = types.find(kind);
    return known == types.end() ? c10::TypePtr(c10::TensorType::get()) : known->second;
}

c10::IValue value_of(const std::string& kind) {
    if (kind == "float") return 0.5;
    if (kind == "int") return std::int64_t{2};
    if (kind == "bool") return true;
    if (kind == "str") return std::string("silu");
    if (kind == "optional") return {};
    if (kind == "ints") return c10::List<std::int64_t>({1, 1});
    return torch::ones({2, 2});
}

// Attributes by dotted path; "module N" is one whose forward takes N tensors.
torch::jit::Module host_of(const Json& attributes, const std::string& prefix,
                           const std::shared_ptr<torch::jit::CompilationUnit>& unit, int inputs) {
    torch::jit::Module host(c10::QualifiedName("__torch__.sweep.Host"), unit, true);
    for (const auto& [path, kind] : attributes.items()) {
        if (!path.starts_with(prefix) || path.find('.', prefix.size()) != std::string::npos) {
            continue;
        }
        const std::string name = path.substr(prefix.size());
        const std::string text = kind.get<std::string>();
        if (text.starts_with("module")) {
            const int wanted = std::stoi("0" + text.substr(std::string("module").size() + 1));
            host.register_module(name, host_of(attributes, path + ".", unit, wanted));
        } else if (text == "tensor") {
            host.register_parameter(name, torch::ones({2, 2}), false);
        } else {
            host.register_attribute(name, type_of(text), value_of(text));
        }
    }
    std::string signature;
    for (int i = 0; i < inputs; ++i) {
        signature += ", x" + std::to_string(i);
    }
    host.define("def forward(self" + signature + "):\n    return " +
                (inputs > 0 ? "x0" : "torch.zeros(1)") + "\n");
    return host;
}

// Fakes: schemas are all that compiling looks at.
int register_operators(const Json& schemas) {
    int registered = 0;
    static std::vector<std::unique_ptr<torch::Library>> libraries;
    for (const auto& [name, list] : schemas.items()) {
        libraries.push_back(std::make_unique<torch::Library>(torch::Library::FRAGMENT, name,
                                                             std::nullopt, __FILE__, __LINE__));
        for (const Json& schema : list) {
            try {
                libraries.back()->def(schema.get<std::string>().c_str());
                ++registered;
            } catch (const std::exception&) {
                // No schema, or one that stands twice.
            }
        }
        runtime::complete_alias_sets(name);
    }
    return registered;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::cerr << "layer_sweep JOB.json\n";
        return 2;
    }
    const Json job = twinkle::base::read_json_file(arguments[1], "job");
    Json answer;
    answer["operators"] = register_operators(job["schemas"]);
    for (const Json& layer : job["layers"]) {
        auto unit = std::make_shared<torch::jit::CompilationUnit>();
        auto host = host_of(layer["attributes"], "", unit, 1);
        const auto package = std::make_shared<runtime::KernelPackage>(
            job["sources"].get<std::map<std::string, std::string>>());
        const auto compilation = std::make_shared<runtime::Compilation>(package, unit);
        const auto name = layer["name"].get<std::string>();
        const auto parameters = runtime::layer_parameters(*package, name);
        runtime::LayerSignature signature;
        for (const Json& kind : layer["parameters"]) {
            const std::size_t i = signature.arguments.size();
            const bool known = parameters && i < parameters->size();
            signature.arguments.push_back({known ? (*parameters)[i].name : "x" + std::to_string(i),
                                           type_of(kind.get<std::string>())});
        }
        const auto made =
            runtime::compile_layer(*compilation, name, host.type(), "replaced", signature, {});
        answer["layers"][name] = made ? "" : made.error();
    }
    std::cout << twinkle::base::dump_json(answer);
    return 0;
}
