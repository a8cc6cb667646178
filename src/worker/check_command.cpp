#include "base/file.h"
#include "kernel/layers.h"
#include "runtime/exported/needed_kernels.h"
#include "runtime/exported/opened_file.h"
#include "runtime/graph/function_calls.h"
#include "runtime/graph/sites.h"
#include "runtime/inspect/bindings.h"
#include "runtime/inspect/operator_sources.h"
#include "runtime/inspect/saved_code.h"
#include "runtime/kernels/declared_operators.h"
#include "runtime/kernels/verified_files.h"
#include "runtime/selection/selection.h"
#include "runtime/source/kernel_package.h"
#include "twinkle/error.h"
#include "worker/commands.h"
#include "worker/mapping_of.h"
#include "worker/opened_model.h"
#include "worker/unconfined.h"

#include <algorithm>
#include <map>
#include <set>

namespace twinkle::worker {

namespace {

using base::Json;

std::string last_part(const std::string& name) {
    return name.substr(name.rfind('.') + 1);
}

// The bindings of one layer; an examination changes the model, so each layer gets a model of its
// own.
std::map<std::string, Mapping> by_layer(const Mapping& mapping) {
    std::map<std::string, Mapping> layers;
    for (const MappedLayer& layer : mapping.layers) {
        Mapping& alone = layers[layer.kernel_name];
        alone.target = mapping.target;
        alone.kernels = mapping.kernels;
        alone.layers.push_back(layer);
    }
    return layers;
}

// The functions that the kernel offers, and those that are bound to its operators, each with its
// binding; without one, a function is tried on the model's functions of the same name.
std::map<std::string, Mapping> by_function(const Mapping& mapping) {
    std::map<std::string, Mapping> functions;
    Mapping bare;
    bare.target = mapping.target;
    bare.kernels = mapping.kernels;
    for (const MappedKernel& kernel : mapping.kernels) {
        const auto sources = runtime::package_sources(runtime::read_verified_sources(kernel));
        for (const auto& function : kernel::read_functions(sources).functions) {
            functions.emplace(function.name, bare);
        }
    }
    for (const MappedFunction& function : mapping.functions) {
        if (function.candidates.empty()) {  // as a mapping says it that was resolved for elsewhere
            continue;
        }
        const FunctionCandidate& first = function.candidates.front();
        functions.emplace(first.op.empty() ? first.function : first.op, bare)
            .first->second.functions.push_back(function);
    }
    return functions;
}

bool concerns(const std::string& name, const Mapping& mapping,
              const std::set<std::string>& called) {
    return std::any_of(called.begin(), called.end(), [&](const std::string& function) {
        return last_part(function) == name ||
               std::any_of(mapping.functions.begin(), mapping.functions.end(),
                           [&](const auto& one) { return one.full_name() == function; });
    });
}

bool concerns(const Mapping& mapping, const std::set<std::string>& classes) {
    return std::any_of(classes.begin(), classes.end(), [&](const std::string& name) {
        return std::any_of(mapping.layers.begin(), mapping.layers.end(), [&](const auto& layer) {
            return runtime::binds(layer, name) || layer.kernel_name == last_part(name);
        });
    });
}

torch::jit::Module open_again(const Request& request) {
    return runtime::open_model_file(request.model, request.model_name,
                                    {.allow_io = request.allow_io, .map_weights = true});
}

}  // namespace

// Checks the layers and functions of a mapping against a model's classes and functions, as
// kernelize would try them. Runs nothing of a kernel and writes nothing.
Json check_command(const Request& request, const Channel& channel) {
    const Mapping mapping = mapping_of(request);
    const runtime::KernelFinder finder(request.kernel_dirs);
    runtime::OperatorSources sources(request.model, {}, &mapping, finder);
    runtime::SavedCode code = runtime::read_saved_code(runtime::code_of_model_file(request.model));
    if (runtime::is_export(request.model)) {
        code.operators = runtime::needs_of_export(request.model, request.model_name).operators;
    }
    for (const auto& op : sources.operators(code)) {
        if (op.kernel) {
            runtime::declare_operators(*op.kernel);
        }
    }
    std::set<std::string> classes;
    std::set<std::string> called;
    const torch::jit::Module untouched = open_to_use(request, channel);
    for (const auto& instance : runtime::instances_of(untouched)) {
        classes.insert(instance.class_name);
    }
    for (const auto& call : runtime::function_calls(untouched)) {
        called.insert(call.function);
    }
    runtime::BindingOptions options{.by_name = true, .mode = request.mode.value_or("inference")};
    Json layers = Json::array();
    for (const auto& [name, alone] : by_layer(mapping)) {
        channel.stage("compile", name);
        Json found = Json::array();
        if (concerns(alone, classes)) {
            torch::jit::Module model = open_again(request);
            for (auto& one : runtime::examine_bindings(model, alone, options).classes) {
                if (classes.contains(one.value("class", ""))) {  // not the kernel's functions
                    found.push_back(std::move(one));
                }
            }
        }
        layers.push_back({{"layer", name}, {"classes", found}});
    }
    Json functions = Json::array();
    for (const auto& [name, alone] : by_function(mapping)) {
        channel.stage("compile", name);
        Json found = Json::array();
        if (concerns(name, alone, called)) {
            torch::jit::Module model = open_again(request);
            options.function = name;
            found = runtime::examine_bindings(model, alone, options).classes;
        }
        functions.push_back({{"function", name}, {"functions", found}});
    }
    warn_of_unconfined(channel);
    return {{"layers", layers}, {"functions", functions}};
}

}  // namespace twinkle::worker
