#include "archive/compiled_package.h"
#include "base/file.h"
#include "base/text.h"
#include "runtime/exported/needed_kernels.h"
#include "runtime/exported/opened_file.h"
#include "runtime/graph/class_name.h"
#include "runtime/inspect/bindings.h"
#include "runtime/inspect/model_facts.h"
#include "runtime/inspect/operator_sources.h"
#include "runtime/inspect/saved_code.h"
#include "runtime/kernels/declared_operators.h"
#include "runtime/model/graphs_mark.h"
#include "runtime/model/inputs.h"
#include "runtime/model/io_operators.h"
#include "runtime/model/marker.h"
#include "worker/commands.h"
#include "worker/inspect_package.h"
#include "worker/mapping_of.h"
#include "worker/opened_model.h"
#include "worker/site_labels.h"
#include "worker/unconfined.h"

#include <torch/custom_class.h>

#include <algorithm>
#include <optional>
#include <set>

namespace twinkle::worker {

namespace {

using base::Json;

// Reads the code of the model as text first; whether more can be said depends on what it needs.
class Inspection {
public:
    Inspection(const Request& request, const Channel& channel)
        : request_(request),
          channel_(channel),
          exported_(runtime::is_export(request.model)),
          files_(runtime::code_of_model_file(request.model)),
          code_(runtime::read_saved_code(files_)),
          finder_(request.kernel_dirs,
                  [&channel](const std::string& attempt) { channel.trace(attempt); }) {
        if (exported_) {
            runtime::Needs needs = runtime::needs_of_export(request.model, request.model_name);
            code_.operators = std::move(needs.operators);
            code_.foreign_classes = std::move(needs.classes);
        } else {
            origin_ = runtime::origin_of(request.model);
        }
        if (request.map) {
            mapping_ = mapping_of(request);
        }
    }

    Json run();

private:
    std::string missing() const;
    std::optional<torch::jit::Module> load();
    void describe(torch::jit::Module& model);
    void describe_unloaded();
    void bindings(torch::jit::Module& model);
    std::vector<runtime::IoUse> io_in_text() const;

    const Request& request_;
    const Channel& channel_;
    bool exported_;
    std::vector<runtime::CodeFile> files_;
    runtime::SavedCode code_;
    runtime::CodeOrigin origin_;
    runtime::KernelFinder finder_;
    std::optional<Mapping> mapping_;
    std::vector<runtime::NeededOperator> operators_;
    std::string not_loaded_;
    Json result_ = Json::object();
};

std::string kind_of(const runtime::CodeOrigin& origin, bool frozen) {
    return frozen                             ? "frozen"
           : origin.traced && origin.scripted ? "traced and scripted"
           : origin.traced                    ? "traced"
           : origin.scripted                  ? "scripted"
                                              : "stripped";
}

// Names what the code needs and this machine lacks; empty: nothing is missing.
std::string Inspection::missing() const {
    std::vector<std::string> missing;
    for (const auto& op : operators_) {
        if (!op.registered && !op.kernel) {
            missing.push_back("the operator " + op.name + " (" + op.because + ")");
        }
    }
    for (const auto& [name, uses] : code_.foreign_classes) {
        if (torch::getCustomClass("__torch__.torch.classes." + name) == nullptr) {
            const auto builds = finder_.builds_of(name.substr(0, name.find('.')),
                                                  runtime::KernelFinder::Search::chosen);
            missing.push_back("the class torch.classes." + name +
                              (builds.empty() ? " (not in LibTorch)"
                                              : " (of the kernel " + builds.front().name +
                                                    ", whose library is not loaded to look)"));
        }
    }
    if (missing.size() > 5) {
        missing.resize(5);
        missing.emplace_back("…");
    }
    return missing.empty() ? "" : "it needs " + base::join(missing, ", ");
}

// Operators of kernels are declared by their schemas, so that no kernel is loaded.
std::optional<torch::jit::Module> Inspection::load() {
    not_loaded_ = missing();
    if (!not_loaded_.empty()) {
        return std::nullopt;
    }
    std::set<std::string> declared;
    for (const auto& op : operators_) {
        if (op.kernel && declared.insert(op.kernel->path.string()).second) {
            for (const std::string& failure : runtime::declare_operators(*op.kernel)) {
                channel_.warning(op.kernel->name + ": " + failure);
            }
        }
    }
    try {
        return open_to_look(request_, channel_);
    } catch (const Error& error) {
        const bool says_enough =
            error.code() == ErrorCode::not_found || error.code() == ErrorCode::refused;
        if (declared.empty() && !says_enough) {
            throw;
        }
        // A library may register something else than its strings say.
        not_loaded_ = error.details().what + ": " + error.details().why;
        return std::nullopt;
    }
}

void Inspection::describe(torch::jit::Module& model) {
    std::size_t parameters = 0;
    std::size_t bytes = 0;
    std::set<std::string> dtypes;
    const auto count = [&](const at::Tensor& tensor) {
        bytes += tensor.nbytes();
        dtypes.insert(runtime::dtype_name(tensor.scalar_type()));
    };
    for (const at::Tensor& parameter : model.parameters()) {
        parameters += static_cast<std::size_t>(parameter.numel());
        count(parameter);
    }
    for (const at::Tensor& buffer : model.buffers()) {
        count(buffer);
    }
    const bool frozen = !model.hasattr("training");
    result_["kind"] = exported_ ? "exported" : kind_of(origin_, frozen);
    result_["training"] = model.hasattr("training") && model.is_training();
    result_["class"] = base::printable(runtime::unmangled(model.type()->name()->qualifiedName()));
    result_["parameters"] = parameters;
    result_["tensor_bytes"] = bytes;
    result_["dtypes"] = dtypes;
    if (request_.graph) {
        result_["graph"] = runtime::whole_graph(model, *request_.graph);
    }
    result_["labels"] = read_labels(model);
    result_["classes"] = runtime::describe_classes(model);
    result_["functions"] = runtime::describe_functions(model);
    result_["traced_functions"] = runtime::describe_traced_functions(model);
}

void Inspection::describe_unloaded() {
    Json classes = Json::array();
    bool modules_train = false;
    for (const auto& [name, saved] : code_.classes) {
        Json methods = Json::array();
        for (const auto& method : saved.methods) {
            methods.push_back({{"name", method.name}, {"signature", method.signature}});
        }
        Json attributes = Json::array();
        for (const auto& [attribute, type] : saved.attributes) {
            attributes.push_back({{"name", attribute}, {"type", type}});
        }
        modules_train = modules_train || saved.attributes.contains("training");
        classes.push_back({{"name", name},
                           {"instances", nullptr},
                           {"types", saved.count},
                           {"base", saved.base},
                           {"methods", methods},
                           {"attributes", attributes},
                           {"graph", nullptr}});
    }
    Json functions = Json::array();
    for (const auto& [name, signature] : code_.functions) {
        const auto calls = code_.called_functions.find(name);
        functions.push_back({{"name", name},
                             {"signature", signature},
                             {"calls", calls == code_.called_functions.end() ? 0 : calls->second}});
    }
    result_["kind"] =
        exported_ ? "exported" : kind_of(origin_, !code_.classes.empty() && !modules_train);
    result_["classes"] = classes;
    result_["functions"] = functions;
    result_["labels"] = Json::array();
    result_["traced_functions"] = Json::array();
    result_["bindings"] = Json::array();
    if (request_.graph) {
        throw Error(ErrorCode::not_found,
                    {.what = "there are no graphs of a model that cannot be loaded",
                     .where = base::display_path(request_.model),
                     .why = base::printable(not_loaded_),
                     .hint = "leave --graph out"});
    }
}

// For a model that is not loaded: operators as PyTorch writes them in its code.
std::vector<runtime::IoUse> Inspection::io_in_text() const {
    std::vector<runtime::IoUse> uses;
    for (const auto& [name, calls] : code_.operators) {
        if (const auto does = runtime::io_of_operator(name)) {
            uses.push_back({base::printable(name), *does});
        }
    }
    for (const auto& [name, count] : code_.foreign_classes) {
        if (const auto does = runtime::io_of_class(name)) {
            uses.push_back({"torch.classes." + base::printable(name), *does});
        }
    }
    return uses;
}

void Inspection::bindings(torch::jit::Module& model) {
    result_["bindings"] = Json::array();
    if (!mapping_) {
        return;
    }
    channel_.stage("compile", "the layers that the model's classes are bound to");
    try {
        const auto report = runtime::examine_bindings(model, *mapping_, {.by_name = true});
        result_["bindings"] = report.classes;
        result_["binding_notes"] = report.warnings;
    } catch (const Error& error) {
        channel_.warning(
            "which classes kernels could take was not found out: " + error.details().what +
            (error.details().why.empty() ? "" : ": " + error.details().why));
    }
}

Json Inspection::run() {
    runtime::OperatorSources sources(request_.model, runtime::markers_in(files_),
                                     mapping_ ? &*mapping_ : nullptr, finder_);
    operators_ = sources.operators(code_);
    Json kernels = Json::array();
    for (const auto& kernel : sources.kernels()) {
        kernels.push_back(to_json(kernel));
    }
    Json operators = Json::array();
    for (const auto& op : operators_) {
        operators.push_back(to_json(op));
    }
    result_["graphs"] = runtime::is_marked_for_graphs(files_);
    result_["kernels"] = kernels;
    result_["operators"] = operators;
    result_["unreadable"] = code_.unreadable;
    auto model = load();
    result_["loaded"] = model.has_value();
    result_["because"] = model ? Json() : Json(base::printable(not_loaded_));
    result_["io"] = Json::array();
    for (const auto& use : model ? runtime::io_of(*model) : io_in_text()) {
        result_["io"].push_back({{"name", use.name}, {"does", use.does}});
    }
    if (model) {
        describe(*model);
        bindings(*model);
    } else {
        describe_unloaded();
    }
    return std::move(result_);
}

}  // namespace

Json inspect_command(const Request& request, const Channel& channel) {
    if (archive::is_compiled(request.model)) {
        return inspect_package(request, channel);
    }
    Json result = Inspection(request, channel).run();
    warn_of_unconfined(channel);
    return result;
}

}  // namespace twinkle::worker
