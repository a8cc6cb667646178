#include "base/file.h"
#include "runtime/model/model_file.h"
#include "runtime/rewrite/sites.h"
#include "twinkle/twinkle.h"
#include "worker/commands.h"

#include <functional>
#include <map>
#include <set>

namespace twinkle::worker {

namespace {

using base::Json;

// Operators of the methods and functions of a model that are not part of LibTorch's own namespaces.
std::set<std::string> foreign_operators(const torch::jit::Module& model) {
    std::set<std::string> found;
    const std::function<void(torch::jit::Block*)> scan = [&](torch::jit::Block* block) {
        for (torch::jit::Node* node : block->nodes()) {
            const std::string ns = node->kind().ns().toUnqualString();
            if (ns != "aten" && ns != "prim" && ns != "twinkle") {
                found.insert(node->kind().toQualString());
            }
            for (torch::jit::Block* inner : node->blocks()) {
                scan(inner);
            }
        }
    };
    for (torch::jit::Function* function : model.type()->compilation_unit()->get_functions()) {
        if (function != nullptr) {
            scan(torch::jit::toGraphFunction(*function).graph()->block());
        }
    }
    return found;
}

}  // namespace

Json inspect_command(const Request& request, const Channel& channel) {
    Json kernels = Json::array();
    for (const RequiredKernel& kernel : required_kernels(request.model)) {
        kernels.push_back({{"name", kernel.name},
                           {"variant", kernel.variant},
                           {"op_namespace", kernel.op_namespace},
                           {"build", kernel.build_id}});
    }
    channel.stage("load-model", base::display_path(request.model));
    const torch::jit::Module model = load(request.model, {.kernel_dirs = request.kernel_dirs});
    struct Class {
        std::size_t instances = 0;
        std::string example;
    };
    std::map<std::string, Class> classes;
    for (const runtime::Instance& instance : runtime::instances_of(model)) {
        Class& entry = classes[instance.class_name];
        if (entry.instances++ == 0) {
            entry.example = instance.path;
        }
    }
    Json listed = Json::array();
    for (const auto& [name, entry] : classes) {
        listed.push_back(
            {{"name", name}, {"instances", entry.instances}, {"example", entry.example}});
    }
    std::size_t parameters = 0;
    for (const at::Tensor& parameter : model.parameters()) {
        parameters += static_cast<std::size_t>(parameter.numel());
    }
    return {{"classes", listed},
            {"kernels", kernels},
            {"operators", foreign_operators(model)},
            {"parameters", parameters}};
}

}  // namespace twinkle::worker
