#pragma once
// One kernelize of one model: sites found, candidates chosen, classes set apart, forwards replaced,
// model marked.

#include "runtime/kernels/loaded_kernels.h"
#include "runtime/rewrite/own_class.h"
#include "runtime/rewrite/passed_parameters.h"
#include "runtime/selection/selection.h"
#include "runtime/source/package_values.h"
#include "twinkle/kernelize.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace twinkle::runtime {

// Where the sources and operators of a kernel come from: load_kernel, or declare_kernel where
// nothing of it may run.
using KernelProvider = std::function<std::shared_ptr<const LoadedKernel>(const MappedKernel&)>;

// DISABLE_KERNEL_MAPPING in the environment: every model stays as it is.
bool mapping_disabled();

class Kernelizer {
public:
    Kernelizer(torch::jit::Module& model, const Mapping& mapping, const KernelizeOptions& options,
               KernelProvider provider = load_kernel);

    Report run();
    // The same, in memory only and for the report's sake: the model is not fit for use afterwards.
    Report examine();

private:
    struct Site {
        Instance instance;
        SiteReport report;
        std::optional<Choice> choice;
        bool absorbed = false;  // by the layer of a site that holds it
    };
    // By class, what came of its replacement.
    using Replacements = std::map<const void*, tl::expected<void, KeepReason>>;

    void determine_context();
    void find_sites();
    void select(Site& site, const std::vector<const MappedLayer*>& bindings);
    void keep(Site& site, const KeepReason& reason);
    void report_unbound(const std::vector<Instance>& instances);
    void report_unmatched(const std::string& option, const std::vector<std::string>& patterns);
    void report_other_machine();
    void set_classes_apart();
    std::optional<NotSeparable> separate();
    std::vector<Site*> sites_below(const c10::ClassTypePtr& type);
    void replace_sites();
    void replace(Site& site, Replacements& done);
    std::vector<std::vector<Site*>> chosen_by_depth();
    void absorb(Site& site);
    tl::expected<void, KeepReason> replace_class(const Site& example);
    std::map<std::string, PassedInputs> passed_inputs(const torch::jit::Module& instance);
    Compilation& compilation_for(const MappedKernel& kernel, const torch::jit::Module& module);
    const MappedKernel* dependency_of(const MappedKernel& kernel, const std::string& repo_id);
    void mark_used_kernel(const MappedKernel& kernel, std::set<std::string>& used);
    void mark_used_kernels();

    torch::jit::Module& model_;
    const Mapping& mapping_;
    const KernelizeOptions& options_;
    KernelProvider provider_;
    SelectionContext context_;
    Report report_;
    std::vector<Site> sites_;
    // By build id: the kernels that get_kernel_dep has asked for.
    std::map<std::string, std::set<const MappedKernel*>> dependencies_;
    // By build id; classes of one model may live in several compilation units.
    std::map<std::pair<std::string, const void*>, std::shared_ptr<Compilation>> compilations_;
    std::optional<PassedParameters> passed_;  // of the model as it came
};

}  // namespace twinkle::runtime
