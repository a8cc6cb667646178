#include "base/file.h"
#include "runtime/inspect/bindings.h"
#include "runtime/inspect/operator_sources.h"
#include "runtime/inspect/saved_code.h"
#include "runtime/kernels/declared_operators.h"
#include "runtime/model/model_file.h"
#include "runtime/rewrite/sites.h"
#include "runtime/selection/selection.h"
#include "twinkle/error.h"
#include "worker/commands.h"

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

bool concerns(const Mapping& mapping, const std::set<std::string>& classes) {
    return std::any_of(classes.begin(), classes.end(), [&](const std::string& name) {
        return std::any_of(mapping.layers.begin(), mapping.layers.end(), [&](const auto& layer) {
            return runtime::binds(layer, name) || layer.kernel_name == last_part(name);
        });
    });
}

}  // namespace

// The layers of a mapping against the classes of a model, as kernelize would try them; nothing of a
// kernel runs and nothing is written.
Json check_command(const Request& request, const Channel& channel) {
    const Mapping mapping =
        Mapping::parse(request.map.dump(), request.model.parent_path(), "mapping");
    const runtime::KernelFinder finder(request.kernel_dirs);
    runtime::OperatorSources sources(request.model, {}, &mapping, finder);
    for (const auto& op :
         sources.operators(runtime::read_saved_code(runtime::code_of(request.model)))) {
        if (op.kernel) {
            runtime::declare_operators(*op.kernel);
        }
    }
    channel.stage("load-model", base::display_path(request.model));
    std::set<std::string> classes;
    for (const auto& instance : runtime::instances_of(runtime::open_model(request.model))) {
        classes.insert(instance.class_name);
    }
    const runtime::BindingOptions options{.by_name = true,
                                          .mode = request.mode.value_or("inference")};
    Json layers = Json::array();
    for (const auto& [name, alone] : by_layer(mapping)) {
        channel.stage("compile", name);
        Json found = Json::array();
        if (concerns(alone, classes)) {
            torch::jit::Module model = runtime::open_model(request.model);
            found = runtime::examine_bindings(model, alone, options).classes;
        }
        layers.push_back({{"layer", name}, {"classes", found}});
    }
    return {{"layers", layers}};
}

}  // namespace twinkle::worker
