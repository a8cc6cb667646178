#include "runtime/exported/needed_kernels.h"

#include "archive/archive.h"
#include "base/file.h"
#include "base/text.h"
#include "kernel/variant.h"
#include "runtime/exported/objects.h"
#include "runtime/exported/plain_pickle.h"
#include "runtime/exported/read_program.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/kernels/declared_operators.h"
#include "runtime/kernels/own_target.h"
#include "runtime/model/marker.h"
#include "twinkle/error.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <string_view>

namespace twinkle::runtime {

namespace {

// "cuda" if any tensor of the program is there.
std::string device_of(const exported::Program& program) {
    std::string device = "cpu";
    for (const auto& [name, meta] : program.graph.tensors) {
        if (!meta.device.starts_with("cpu") && !meta.device.starts_with("meta")) {
            device = meta.device.substr(0, meta.device.find(':'));
        }
    }
    return device;
}

std::set<std::string> missing_namespaces(const Needs& needs) {
    std::set<std::string> missing;
    for (const auto& [name, objects] : needs.classes) {
        if (!exported::has_class(name)) {
            missing.insert(name.substr(0, name.find('.')));
        }
    }
    for (const auto& [name, calls] : needs.operators) {
        const std::string op_namespace = name.substr(0, name.find("::"));
        if (op_namespace != "aten" && op_namespace != "higher_order" && !is_registered(name)) {
            missing.insert(op_namespace);
        }
    }
    return missing;
}

// Why a build does not run here; empty: it does. A folder that is named otherwise than builds of
// the Hub are is for this machine, as whoever chose it says.
std::string misfit(const MappedKernel& build, const std::string& device) {
    const auto variant = kernel::parse_variant(build.variant);
    if (!variant) {
        return build.device == device || build.device.empty() ? "" : "it is for " + build.device;
    }
    const auto judgement = kernel::judge_variant(*variant, own_target(), device);
    return judgement.accepted ? "" : judgement.reason;
}

bool is_better(const MappedKernel& one, const MappedKernel& other) {
    const auto first = kernel::parse_variant(one.variant);
    const auto second = kernel::parse_variant(other.variant);
    return first && second && one.path.parent_path() == other.path.parent_path() &&
           kernel::is_preferred(*first, *second);
}

[[noreturn]] void refuse_misfits(const std::filesystem::path& file, const std::string& op_namespace,
                                 const MappedKernel& build, const std::string& why) {
    throw Error(ErrorCode::refused,
                {.what = "no build with the operators " + base::printable(op_namespace) +
                         ", which it calls, runs here",
                 .where = base::display_path(file),
                 .why = base::display_path(build.path) + ": " + why,
                 .hint = "`twinkle versions` shows which builds fit; name the folder of one with "
                         "--kernels or TWINKLE_KERNELS"});
}

void count_operators(const exported::Graph& graph, std::map<std::string, std::size_t>& calls) {
    for (const exported::Node& node : graph.nodes) {
        const auto parts = base::split(node.target, '.');
        if (parts.size() == 5 && parts[0] == "torch" && parts[1] == "ops") {
            ++calls[parts[2] + "::" + parts[3]];
        }
        for (const exported::NamedArgument& input : node.inputs) {
            if (input.value.graph) {
                count_operators(*input.value.graph, calls);
            }
        }
    }
}

void add_namespaces_of_classes(const c10::TypePtr& type, std::set<std::string>& namespaces) {
    const auto object = type->cast<c10::ClassType>();
    if (object == nullptr) {
        for (const c10::TypePtr& part : type->containedTypes()) {
            add_namespaces_of_classes(part, namespaces);
        }
        return;
    }
    const std::string name = object->name() ? object->name()->qualifiedName() : "";
    if (name.starts_with(exported::torch_classes_prefix)) {
        const std::string rest = name.substr(exported::torch_classes_prefix.size());
        namespaces.insert(rest.substr(0, rest.find('.')));
    }
}

// Looks at those that it holds, and at those that it gets.
std::set<std::string> namespaces_of_objects(const torch::jit::Module& model) {
    std::set<std::string> namespaces;
    for (const auto& module : model.modules()) {
        for (const auto& attribute : module.type()->getAttributes()) {
            add_namespaces_of_classes(attribute.getType(), namespaces);
        }
    }
    for (const c10::Argument& input :
         model.get_method("forward").function().getSchema().arguments()) {
        add_namespaces_of_classes(input.type(), namespaces);
    }
    return namespaces;
}

// Markers have words alone.
std::string word(std::string text) {
    std::replace_if(
        text.begin(), text.end(),
        [](unsigned char c) {
            return std::isalnum(c) == 0 &&
                   std::string_view("_-./@+").find(static_cast<char>(c)) == std::string_view::npos;
        },
        '_');
    return text.empty() ? "-" : text;
}

}  // namespace

Needs needs_of(const exported::Program& program) {
    Needs needs{{}, exported::classes_of(program)};
    count_operators(program.graph, needs.operators);
    return needs;
}

Needs needs_of_export(const std::filesystem::path& file, const std::string& model) {
    return needs_of(exported::read_program(archive::Archive(file), model));
}

std::vector<MappedKernel> kernels_with_operators(const std::filesystem::path& file,
                                                 const Needs& needs, const std::string& device,
                                                 const KernelFinder& finder) {
    std::vector<MappedKernel> found;
    for (const std::string& op_namespace : missing_namespaces(needs)) {
        const auto builds = finder.builds_of(op_namespace, KernelFinder::Search::chosen);
        const MappedKernel* best = nullptr;
        std::string why;
        for (const MappedKernel& build : builds) {
            const std::string problem = misfit(build, device);
            if (problem.empty() && (best == nullptr || is_better(build, *best))) {
                best = &build;
            }
            why = why.empty() ? problem : why;
        }
        if (best == nullptr && !builds.empty()) {
            refuse_misfits(file, op_namespace, builds.front(), why);
        }
        if (best != nullptr) {
            found.push_back(*best);
        }
    }
    return found;
}

std::vector<MappedKernel> kernels_of_export(const std::filesystem::path& file,
                                            const std::string& model, const KernelFinder& finder) {
    const exported::Program program = exported::read_program(archive::Archive(file), model);
    return kernels_with_operators(file, needs_of(program), device_of(program), finder);
}

std::vector<MappedKernel> kernels_of_export(const std::filesystem::path& file,
                                            const std::string& model, const Mapping& mapping) {
    const auto missing = missing_namespaces(needs_of_export(file, model));
    std::vector<MappedKernel> found;
    std::copy_if(mapping.kernels.begin(), mapping.kernels.end(), std::back_inserter(found),
                 [&](const MappedKernel& kernel) { return missing.contains(kernel.op_namespace); });
    return found;
}

void mark_needed_kernels(torch::jit::Module& model) {
    std::set<std::string> namespaces = namespaces_of_objects(model);
    for (const auto& graph : graphs_of(model)) {
        for_each_node(graph->block(), [&](const torch::jit::Node* node) {
            namespaces.insert(node->kind().ns().toUnqualString());
        });
    }
    for (const std::string& op_namespace : namespaces) {
        if (const auto kernel = kernel_with_operators(op_namespace)) {
            mark_model(model, {word(kernel->kernel.name), word(kernel->kernel.variant),
                               op_namespace, kernel->build_id});
        }
    }
}

}  // namespace twinkle::runtime
