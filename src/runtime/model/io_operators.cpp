#include "runtime/model/io_operators.h"

#include "base/file.h"
#include "base/text.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/model/text_operators.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <array>
#include <map>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

struct Entry {
    std::string_view name;  // an operator, "namespace::*", or a class
    const char* does;
};

// Operators of LibTorch 2.6 to 2.15, and of its domain libraries.
constexpr std::array<Entry, 27> operators = {{
    {"aten::save", "writes a file"},
    {"aten::from_file", "opens a file, and may write it"},
    {"debugprims::load_tensor", "reads a file"},
    {"image::read_file", "reads a file"},
    {"image::write_file", "writes a file"},
    {"video_reader::*", "reads files"},
    {"torchaudio::*", "reads and writes files"},
    {"torchaudio_sox::*", "reads and writes files"},
    {"torchaudio_ffmpeg::*", "reads and writes files, and uses the network"},
    {"torchcodec_ns::*", "reads and writes files, and uses the network"},
    {"prim::PythonOp", "runs Python"},
    {"prim::rpc_async", "calls other processes over the network"},
    {"prim::rpc_sync", "calls other processes over the network"},
    {"prim::rpc_remote", "calls other processes over the network"},
    {"c10d::*", "speaks to other processes"},
    {"_c10d_functional::*", "speaks to other processes"},
    {"_c10d_functional_autograd::*", "speaks to other processes"},
    {"c10d_functional::*", "speaks to other processes"},
    {"_dtensor::*", "speaks to other processes"},
    {"symm_mem::*", "shares memory with other processes"},
    {"fsdp::*", "speaks to other processes"},
    {"aoti::*", "loads a library"},
    {"tensorrt::*", "loads an engine of other code"},
    {"neuron::*", "loads an engine of other code"},
    {"delegate::*", "loads an engine of other code"},
    {"qaic::*", "loads an engine of other code"},
    {"nnapi::*", "loads an engine of other code"},
}};

constexpr std::array<Entry, 9> classes = {{
    {"_nnapi.*", "loads an engine of other code"},
    {"aoti.*", "loads a library"},
    {"aot_inductor.*", "loads a library"},
    {"c10d.*", "speaks to other processes"},
    {"dist_c10d.*", "speaks to other processes"},
    {"dist_rpc.*", "calls other processes over the network"},
    {"tensorrt.*", "loads an engine of other code"},
    {"torchaudio.*", "reads and writes files"},
    {"video_reader.*", "reads files"},
}};

// Quantized and mobile models compute with these, and pack their weights in them.
constexpr std::array<std::string_view, 12> computing_namespaces = {
    "aten",   "prim",   "prims", "quantized", "_quantized", "quantization",
    "mkldnn", "onednn", "mkl",   "sparse",    "prepacked",  "mkldnn_prepacked"};
constexpr std::array<std::string_view, 7> computing_classes = {
    "quantized", "rnn", "sparse", "mkldnn", "xnnpack", "vulkan", "twinkle"};

std::optional<std::string> found_in(const auto& table, std::string_view name,
                                    std::string_view separator) {
    const auto space = name.substr(0, name.find(separator));
    for (const Entry& entry : table) {
        if (entry.name == name || (entry.name.ends_with('*') &&
                                   entry.name.substr(0, entry.name.find(separator)) == space)) {
            return entry.does;
        }
    }
    return std::nullopt;
}

bool contains(const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool takes_text(std::string_view name) {
    const auto overloads = jit::getAllOperatorsFor(c10::Symbol::fromQualString(std::string(name)));
    return std::any_of(overloads.begin(), overloads.end(), [](const auto& overload) {
        const auto& arguments = overload->schema().arguments();
        return std::any_of(arguments.begin(), arguments.end(), [](const auto& argument) {
            return argument.type()->str().find("str") != std::string::npos;
        });
    });
}

constexpr std::string_view torch_classes = "__torch__.torch.classes.";

// The torch.classes class that a node instantiates or calls.
std::string foreign_class(const jit::Node& node) {
    const jit::Value* value = nullptr;
    if (node.kind() == c10::prim::CallMethod && !node.inputs().empty()) {
        value = node.input(0);
    } else if (node.kind() == c10::prim::CreateObject && !node.outputs().empty()) {
        value = node.output(0);
    }
    const auto type = value != nullptr ? value->type()->cast<c10::ClassType>() : nullptr;
    const std::string name = type && type->name() ? type->name()->qualifiedName() : "";
    return name.starts_with(torch_classes) ? name.substr(torch_classes.size()) : "";
}

}  // namespace

std::optional<std::string> io_of_operator(std::string_view name) {
    return found_in(operators, name, "::");
}

std::optional<std::string> io_of_class(std::string_view name) {
    return found_in(classes, name, ".");
}

std::optional<std::string> unfit_for_loading(std::string_view name) {
    if (const auto does = io_of_operator(name)) {
        return "which " + *does;
    }
    const auto space = name.substr(0, name.find("::"));
    if (name == "twinkle::needs_kernel") {  // does nothing (model/marker.h)
        return std::nullopt;
    }
    if (!contains(computing_namespaces, space)) {
        return "which is not LibTorch's own";
    }
    if (space == "aten" && !takes_text_to_compute(name.substr(space.size() + 2)) &&
        takes_text(name)) {
        return "which takes a text and may use it as a path";
    }
    return std::nullopt;
}

std::optional<std::string> class_unfit_for_loading(std::string_view name) {
    if (const auto does = io_of_class(name)) {
        return "which " + *does;
    }
    return contains(computing_classes, name.substr(0, name.find('.')))
               ? std::nullopt
               : std::optional<std::string>("which is not LibTorch's own");
}

std::vector<IoUse> io_of(const jit::Module& model) {
    std::map<std::string, std::string> found;
    for (const auto& graph : graphs_of(model)) {
        for_each_node_and_forked(graph->block(), [&](const jit::Node* node) {
            const std::string name = node->kind().toQualString();
            if (const auto does = io_of_operator(name)) {
                found.emplace(name, *does);
            }
            const std::string type = foreign_class(*node);
            if (const auto does = type.empty() ? std::nullopt : io_of_class(type)) {
                found.emplace("torch.classes." + type, *does);
            }
        });
    }
    std::vector<IoUse> uses;
    for (const auto& [name, does] : found) {
        uses.push_back({base::printable(name), does});
    }
    return uses;
}

std::string io_text(const std::vector<IoUse>& uses) {
    std::vector<std::string> texts;
    for (const IoUse& use : uses) {
        texts.push_back(use.name + " (" + use.does + ")");
    }
    return base::join(texts, ", ");
}

void require_no_io(const jit::Module& model, const std::filesystem::path& file) {
    const auto uses = io_of(model);
    if (!uses.empty()) {
        throw Error(ErrorCode::refused,
                    {.what = "the model's code reaches files, other processes or the network",
                     .where = base::display_path(file),
                     .why = "it calls " + io_text(uses),
                     .hint = "it was not run; --allow-io allows it, if you trust the model"});
    }
}

}  // namespace twinkle::runtime
