#pragma once
// One kernelize of one model: sites found, candidates chosen, classes set apart, patterns, forwards
// and calls of functions replaced, model marked.

#include "runtime/calls/stand_in.h"
#include "runtime/classes/own_class.h"
#include "runtime/graph/function_calls.h"
#include "runtime/graph/passed_parameters.h"
#include "runtime/kernels/loaded_kernels.h"
#include "runtime/layers/operator_check.h"
#include "runtime/patterns/pattern_sites.h"
#include "runtime/proof/binding.h"
#include "runtime/selection/selection.h"
#include "runtime/source/package_values.h"
#include "twinkle/implementation.h"
#include "twinkle/kernelize.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

namespace twinkle::runtime {

class InlinedCode;
struct Answer;
struct InlinedCall;
struct InlinedGraph;
struct Question;
struct Region;
struct RunPart;
struct TracedRun;
class TracedCalls;

// DISABLE_KERNEL_MAPPING in the environment: every model stays as it is.
bool mapping_disabled();

class Kernelizer {
public:
    Kernelizer(torch::jit::Module& model, const Mapping& mapping, const KernelizeOptions& options,
               KernelProvider provider = load_kernel);

    // C++ functions that candidates of the mapping name as operators of "twinkle_native".
    void set_natives(std::map<std::string, Implementation> natives) {
        natives_ = std::move(natives);
    }

    Report run();
    // The same, in memory only and for the report's sake: the model is not fit for use afterwards.
    Report examine();

private:
    // A call that a trace has inlined.
    struct Inlined {
        std::string method;
        std::size_t function = 0;  // of the mapping
        InlinedPlace place;
        std::size_t nodes = 0;  // of its run
        CallBinding binding;
    };
    struct Site {
        Instance instance;
        SiteReport report;
        std::optional<Choice> choice;
        bool is_call = false;     // of a function or pattern, in a method of the instance …
        bool in_forward = false;  // … which is its forward
        const torch::jit::Function* in_function = nullptr;  // … or in this other function
        bool left_out = false;                              // by the options
        bool absorbed = false;                // by something around it: nothing else has called it
        std::optional<Fallback> forbidden{};  // for which it is kept, though that is not allowed
        std::size_t parts = 0;
        std::optional<Inlined> inlined{};
        std::string place{};  // of a pattern: equal for instances that share their code

        void add_part(const std::string& name);
    };
    // By class, what came of its replacement.
    using Replacements = std::map<const void*, tl::expected<void, KeepReason>>;

    void determine_context();
    void find_sites();
    bool is_left_out(Site& site);
    void select(Site& site, const std::vector<const MappedLayer*>& bindings);
    void find_calls();
    void find_inlined(std::set<std::string>& called);
    std::vector<InlinedGraph> inlined_graphs(TracedCalls& calls);
    std::map<const TracedRun*, Answer> prove(std::vector<InlinedGraph>& graphs);
    std::optional<Question> question_about(InlinedGraph& graph, const TracedRun& run);
    void run_model();
    void add_inlined(const InlinedGraph& graph, const std::map<const TracedRun*, Answer>& answers,
                     std::set<std::string>& called);
    Site inlined_site(const InlinedGraph& graph, const Instance& instance, const TracedRun& run,
                      const RunPart& part, std::size_t& number) const;
    void decide(Site& site, const tl::expected<CallBinding, std::string>* proved);
    void replace_inlined();
    void replace_inlined(torch::jit::Function& method, const std::vector<Site*>& sites);
    tl::expected<void, KeepReason> replace_inlined(
        const Site& site, InlinedCode& code, std::optional<InlinedCall>& call,
        std::unordered_set<const torch::jit::Node*>& gone);
    tl::expected<torch::jit::Function*, KeepReason> stand_in(const Site& site,
                                                             const Region& region);
    void select(Site& site, const MappedFunction& function);
    void find_patterns();
    void find_places_again();
    void keep_taken_layers();
    void add_pattern(const PatternSite& place, std::vector<bool>& claimed);
    void report_unfound_patterns();
    void replace_patterns(bool in_layers);
    void put_stand_ins(const std::vector<std::pair<Site*, const PatternSite*>>& found);
    bool is_in_chosen_layer(const Site& site) const;
    tl::expected<torch::jit::Function*, KeepReason> stand_in(const Choice& choice,
                                                             const PatternSite& place);
    tl::expected<torch::jit::Function*, KeepReason> make_stand_in_for(
        const Choice& choice, const torch::jit::Module& instance, const CallShape& shape,
        const c10::QualifiedName& name, const std::string& what);
    void report_uncalled(const std::set<std::string>& called);
    void keep(Site& site, const KeepReason& reason);
    void refuse_forbidden(const Site& site) const;
    void refuse_forbidden_outside();
    void refuse_kept() const;
    void report_unbound(const std::vector<Instance>& instances);
    void report_unmatched(const std::string& option, const std::vector<std::string>& patterns);
    void report_nowhere(std::string text);
    void report_other_machine();
    void set_classes_apart();
    std::optional<NotSeparable> separate();
    std::vector<Site*> sites_below(const c10::ClassTypePtr& type);
    void replace_sites();
    void enter(Site& site, const tl::expected<void, KeepReason>& result);
    void replace(Site& site, Replacements& done);
    std::vector<std::vector<Site*>> chosen_by_depth();
    Site* holder_around(std::string name, const std::function<bool(const Site&)>& test) const;
    Site* replaced_around(const std::string& name) const;
    bool absorb(Site& site);
    void absorb_uncalled();
    tl::expected<void, KeepReason> replace_class(const Site& example);
    void replace_calls();
    struct CallReplacer;
    tl::expected<void, KeepReason> replace_call(const Choice& choice, const FunctionCall& call);
    tl::expected<torch::jit::Function*, KeepReason> stand_in(const Choice& choice,
                                                             const FunctionCall& call);
    const tl::expected<Substitutes, KeepReason>& substitutes_for(
        const Choice& choice, const torch::jit::Module& module,
        const c10::FunctionSchema& stands_for, const std::string& what);
    tl::expected<Substitutes, KeepReason> make_substitutes(const Choice& choice,
                                                           const torch::jit::Module& module,
                                                           const c10::FunctionSchema& stands_for,
                                                           const std::string& what);
    void refuse_other_arity(const Choice& choice, const c10::FunctionSchema& stands_for,
                            const std::string& what) const;
    OperatorUse operator_use() const;
    std::optional<KeepReason> unfit(const Choice& choice, torch::jit::Function& stand_in) const;
    tl::expected<Compilation*, KeepReason> loaded(const Choice& choice,
                                                  const torch::jit::Module& module);
    std::map<std::string, PassedInputs> passed_inputs(const torch::jit::Module& instance);
    Compilation& compilation_for(const MappedKernel& kernel, const torch::jit::Module& module);
    Compilation& compilation_for(const FunctionCandidate& source, const torch::jit::Module& module);
    const MappedKernel* dependency_of(const MappedKernel& kernel, const std::string& repo_id);
    void mark_used_kernel(const MappedKernel& kernel, std::set<std::string>& used);
    void mark_used_kernels(Report& report);

    torch::jit::Module& model_;
    const Mapping& mapping_;
    const KernelizeOptions& options_;
    KernelProvider provider_;
    SelectionContext context_;
    Report report_;
    std::vector<Site> sites_;
    // Sites that others may become part of, by the path of their instance: its layer before
    // patterns.
    std::map<std::string, std::vector<Site*>> holders_;
    std::map<std::string, Site*> takers_;  // patterns that were tried, by the modules they took in
    // What came of places, by key: instances of a class share them.
    std::map<std::string, tl::expected<void, KeepReason>> in_pattern_places_;
    // By build id: the kernels that get_kernel_dep has asked for.
    std::map<std::string, std::set<const MappedKernel*>> dependencies_;
    // By build id; classes of one model may live in several compilation units.
    std::map<std::pair<std::string, const void*>, std::shared_ptr<Compilation>> compilations_;
    std::optional<PassedParameters> passed_;  // of the model as it came
    std::map<std::string, Implementation> natives_;
    FunctionUses uses_;  // in the model as it came
    std::vector<PatternRule> rules_;
    std::optional<PatternSearch> patterns_;  // in the model as its classes are now
    // The originals of patterns, which stand-ins are made after.
    std::shared_ptr<torch::jit::CompilationUnit> originals_;
    // By compilation unit, what the call passes, and the candidate.
    std::map<std::tuple<const void*, std::string, const FunctionCandidate*>,
             tl::expected<torch::jit::Function*, KeepReason>>
        stand_ins_;
    // By compilation unit, candidate, and for a C++ function the types of its arguments.
    std::map<std::tuple<const void*, const FunctionCandidate*, std::string>,
             tl::expected<Substitutes, KeepReason>>
        substitutes_;
    std::map<const FunctionCandidate*, KeepReason> unusable_;  // for calls that are inlined
    // Of inlined calls, by compilation unit, name and code.
    std::map<std::tuple<const void*, std::string, std::string>, torch::jit::Function*> in_place_;
};

// The last word on a model, once all that was to be replaced in it is: a warning where nothing was.
void report_nothing_replaced(Report& report, const Mapping& mapping);

}  // namespace twinkle::runtime
