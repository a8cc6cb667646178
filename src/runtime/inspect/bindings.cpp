#include "runtime/inspect/bindings.h"
#include "runtime/graph/format.h"

#include "base/text.h"
#include "kernel/layers.h"
#include "runtime/graph/function_calls.h"
#include "runtime/kernels/declared_operators.h"
#include "runtime/kernels/verified_files.h"
#include "runtime/layers/host_attributes.h"
#include "runtime/layers/lost_attributes.h"
#include "runtime/plan/run.h"
#include "runtime/source/kernel_package.h"

#include <algorithm>
#include <cctype>

namespace twinkle::runtime {

using base::Json;

namespace {

std::string last_part(const std::string& name) {
    return name.substr(name.rfind('.') + 1);
}

// Cuts "layers.py:12: …" to "layers.py:12".
std::string place_in(const std::string& because) {
    const auto py = because.find(".py:");
    if (py == std::string::npos || because.find(' ') < py) {
        return "";
    }
    auto end = py + 4;
    while (end < because.size() && std::isdigit(static_cast<unsigned char>(because[end]))) {
        ++end;
    }
    return end > py + 4 ? because.substr(0, end) : "";
}

class Examination {
public:
    Examination(torch::jit::Module& model, const Mapping& mapping, const BindingOptions& options)
        : model_(model), mapping_(mapping), options_(options), instances_(instances_of(model)) {}

    BindingReport run();

private:
    void add_bindings_by_name();
    std::map<std::string, std::vector<FunctionCandidate>> offered_functions() const;
    void add_functions_by_name();
    KernelizeOptions kernelize_options() const;
    const kernel::LayerSource* layer_source(const std::string& kernel, const std::string& layer);
    std::vector<const MappedLayer*> layers_of(const std::string& class_name) const;
    Json attributes(const Instance& instance, const MappedLayer& layer,
                    const kernel::LayerSource& source) const;
    Json entry(const std::string& class_name, const std::vector<const SiteReport*>& sites);

    torch::jit::Module& model_;
    Mapping mapping_;
    const BindingOptions& options_;
    std::vector<Instance> instances_;
    std::size_t bound_by_name_ = 0;  // the last so many layers of the mapping
    std::set<std::string> functions_by_name_;
    std::map<std::string, kernel::LayerList> layers_;  // by the kernel's name
    // By the instance's path; computed before the examination changes the graphs.
    std::map<std::string, AttributeMap> lost_;
};

std::vector<const MappedLayer*> Examination::layers_of(const std::string& class_name) const {
    std::vector<const MappedLayer*> found;
    for (const MappedLayer& layer : mapping_.layers) {
        if (binds(layer, class_name)) {
            found.push_back(&layer);
        }
    }
    return found;
}

void Examination::add_bindings_by_name() {
    std::set<std::string> classes;
    for (const Instance& instance : instances_) {
        if (layers_of(instance.class_name).empty()) {
            classes.insert(instance.class_name);
        }
    }
    std::vector<MappedLayer> added;
    for (const std::string& name : classes) {
        for (const MappedLayer& layer : mapping_.layers) {
            const bool same = std::any_of(
                layer.candidates.begin(), layer.candidates.end(),
                [&](const LayerCandidate& one) { return one.layer == last_part(name); });
            if (same || layer.kernel_name == last_part(name)) {
                added.push_back(layer);
                added.back().classes = {name};
                added.back().modules.clear();
                added.back().when.clear();
                break;
            }
        }
    }
    bound_by_name_ = added.size();
    mapping_.layers.insert(mapping_.layers.end(), added.begin(), added.end());
}

// Returns them by name; if several kernels have a function, the first one's.
std::map<std::string, std::vector<FunctionCandidate>> Examination::offered_functions() const {
    std::map<std::string, std::vector<FunctionCandidate>> offered;
    for (const MappedKernel& kernel : mapping_.kernels) {
        const auto list = kernel::read_functions(package_sources(read_verified_sources(kernel)));
        for (const kernel::FunctionSource& function : list.functions) {
            auto& candidates = offered[function.name];
            if (candidates.empty() || candidates.front().kernel == kernel.name) {
                FunctionCandidate one;
                one.kernel = kernel.name;
                one.function = function.name;
                one.device = kernel.device;
                one.mode = "fallback";
                one.has_backward = function.has_backward;
                one.can_torch_compile = function.can_torch_compile;
                candidates.push_back(std::move(one));
            }
        }
    }
    return offered;
}

void Examination::add_functions_by_name() {
    std::set<std::string> called;
    for (const FunctionCall& call : function_calls(model_)) {
        if (!call.replaced) {
            called.insert(call.function);
        }
    }
    for (const MappedFunction& function : mapping_.functions) {
        called.erase(function.full_name());
    }
    if (called.empty()) {
        return;
    }
    const auto offered = offered_functions();
    for (const std::string& name : called) {
        const std::string own = last_part(name);
        const auto found = offered.find(own);
        if (own.size() < name.size() && found != offered.end() &&
            (options_.function.empty() || options_.function == own)) {
            mapping_.functions.push_back(
                {name.substr(0, name.size() - own.size() - 1), own, found->second});
            functions_by_name_.insert(name);
        }
    }
}

KernelizeOptions Examination::kernelize_options() const {
    KernelizeOptions options;
    options.mode = options_.mode;
    options.fallback = parse_fallbacks({"all"});
    if (model_.parameters().size() == 0) {
        options.device = "cpu";
    }
    return options;
}

const kernel::LayerSource* Examination::layer_source(const std::string& kernel,
                                                     const std::string& layer) {
    const auto found = layers_.find(kernel);
    return found == layers_.end() ? nullptr : found->second.find(layer);
}

Json Examination::attributes(const Instance& instance, const MappedLayer& layer,
                             const kernel::LayerSource& source) const {
    Json found = Json::array();
    const auto& type = instance.module.type();
    const auto lost = lost_.find(instance.path);
    for (const std::string& name : source.host_attributes) {
        const bool saved = type->hasAttribute(name) || type->findConstant(name).has_value();
        const bool in_graph = lost != lost_.end() && lost->second.contains(name);
        found.push_back({{"name", name},
                         {"from", saved                             ? "saved"
                                  : layer.attributes.contains(name) ? "manifest"
                                  : in_graph                        ? "graph"
                                  : source.tensors.contains(name)   ? "nowhere"
                                                                    : "lost"}});
    }
    return found;
}

// The entry for all sites of one class.
Json Examination::entry(const std::string& class_name,
                        const std::vector<const SiteReport*>& sites) {
    const auto layers = layers_of(class_name);
    std::vector<std::string> names;
    for (const MappedLayer* layer : layers) {
        names.push_back(layer->kernel_name);
    }
    const bool by_name =
        functions_by_name_.contains(class_name) ||
        (!layers.empty() &&
         layers.front() >= mapping_.layers.data() + mapping_.layers.size() - bound_by_name_);
    const kernel::LayerSource* source = nullptr;
    std::string kernel, variant;
    std::size_t fits = 0;
    std::map<std::string, std::vector<const SiteReport*>> kept;  // by reason
    for (const SiteReport* site : sites) {
        if (!site->kernel.empty()) {
            kernel = site->kernel;
            variant = site->variant;
            const auto colon = site->kernel.rfind(": ");
            source = layer_source(site->kernel.substr(0, colon), site->kernel.substr(colon + 2));
        }
        if (site->status == SiteStatus::replaced) {
            ++fits;
        } else {
            kept[site->because].push_back(site);
        }
    }
    Json reasons = Json::array();
    for (const auto& [because, where] : kept) {
        std::string place = place_in(because);
        if (place.empty() && source != nullptr) {
            place = fmt::format("{}:{}", source->file, source->line);
        }
        reasons.push_back({{"because", base::printable(because)},
                           {"where", base::printable(place)},
                           {"sites", where.size()},
                           {"as_asked", where.front()->as_asked},
                           {"example", base::printable(where.front()->site)}});
    }
    Json needed = Json::array();
    const auto example = std::find_if(
        instances_.begin(), instances_.end(),
        [&](const Instance& instance) { return instance.path == sites.front()->site; });
    if (source != nullptr && example != instances_.end()) {
        needed = attributes(*example, *layers.front(), *source);
    }
    return {{"class", base::printable(class_name)},
            {"kind", sites.front()->kind},
            {"layers", names},
            {"by", by_name ? "name" : "binding"},
            {"kernel", base::printable(kernel)},
            {"variant", base::printable(variant)},
            {"sites", sites.size()},
            {"fits", fits},
            {"kept", reasons},
            {"attributes", needed}};
}

BindingReport Examination::run() {
    if (options_.by_name) {
        add_bindings_by_name();
        add_functions_by_name();
    }
    const PassedParameters passed(model_);
    for (const Instance& instance : instances_) {
        if (!layers_of(instance.class_name).empty()) {
            lost_[instance.path] =
                lost_attributes(instance.module, passed.of(instance.module)).values;
        }
    }
    const KernelProvider provider = [&](const MappedKernel& kernel) {
        auto declared = declare_kernel(kernel);
        layers_.emplace(kernel.name, kernel::read_layers(package_sources(declared->sources)));
        return declared;
    };
    const KernelizeOptions options = kernelize_options();
    Report report = report_of_applying({model_, mapping_, options, provider});
    std::map<std::string, std::vector<const SiteReport*>> by_class;
    for (const SiteReport& site : report.sites) {
        by_class[site.of].push_back(&site);
    }
    BindingReport result;
    for (const auto& [name, sites] : by_class) {
        result.classes.push_back(entry(name, sites));
    }
    result.warnings = std::move(report.warnings);
    return result;
}

}  // namespace

BindingReport examine_bindings(torch::jit::Module& model, const Mapping& mapping,
                               const BindingOptions& options) {
    return Examination(model, mapping, options).run();
}

}  // namespace twinkle::runtime
