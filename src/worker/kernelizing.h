#pragma once
// The common part of kernelize and bench: the model of a request, kernelized as its mapping says,
// with every kernel tried in a child process first, and verified on its inputs.

#include "base/json.h"
#include "protocol/request.h"
#include "runtime/plan/planned_model.h"
#include "runtime/verify/verification.h"
#include "twinkle/twinkle.h"
#include "worker/channel.h"
#include "worker/given_choices.h"

#include <map>
#include <memory>
#include <string>

namespace twinkle::worker {

using protocol::Request;

class Kernelizing {
public:
    Kernelizing(const Request& request, const Channel& channel);
    Kernelizing(const Kernelizing&) = delete;
    Kernelizing& operator=(const Kernelizing&) = delete;

    // Null: the mapping alone says what is chosen.
    Kernelized kernelize(GivenChoices* choices = nullptr);
    // Where the model runs to be verified or measured: the GPU that it is for, if this machine has
    // one.
    std::optional<torch::Device> gpu() const { return options_.prove_on; }
    // The context of a verification on the request's inputs, which must exist.
    runtime::VerificationContext verification(const Report& report) const;
    // Verifies each replaced site that has not been verified yet. What is not right gives way to
    // its next candidate or to the original, or is Error, as the request says. Returns what was
    // found out of each site as it is now. The sizes that the original accepts stay in the context.
    std::map<std::string, runtime::Verdict> verify_sites(Kernelized& made,
                                                         runtime::VerificationContext& context);
    // Judges these sites as the context says, whatever was judged before.
    std::map<std::string, runtime::Verdict> judge(const Kernelized& made,
                                                  runtime::VerificationContext& context,
                                                  const std::vector<std::string>& sites);
    // What was judged not to be right gives way; the model is made again then.
    void drop_wrong(Kernelized& made, const std::map<std::string, runtime::Verdict>& verdicts);
    // Error, with the exit status that says whether it gave values.
    [[noreturn]] void throw_failed(const std::string& site, const runtime::Verdict& verdict) const;
    bool is_strict() const { return request_.strict; }
    // Whether the model was made to be replayed as CUDA graphs; it is worked on without that mark.
    bool was_marked_for_graphs() const { return was_marked_; }
    // Warns if nothing is replaced any more of what was.
    void say_if_nothing_is_left(Report& report) const;
    // The plan that the model was made by; what is changed of it counts when it is made again.
    runtime::Plan& plan() { return planned_->plan(); }
    // The same model from the untouched file, by the plan as it is now.
    void make_again(Kernelized& made);
    // Of the sizes of the context, those that the original accepts stay; says what is missing of
    // what was asked for (more_inputs.h).
    void keep_sizes(runtime::VerificationContext& context,
                    std::vector<runtime::SizeVariant> accepted);
    // Throws Error(verification) if the model is not right as it was converted.
    void verify_conversion(Kernelized& made, const runtime::VerificationContext& context) const;
    // Throws Error(verification) if the model as a whole is not right.
    void verify_whole(Kernelized& made, const runtime::VerificationContext& context) const;

private:
    void observe(const std::string& stage, const std::string& what);
    runtime::Job job_for(torch::jit::Module& model) const;
    torch::jit::Module open_model();
    bool refuse_unfit(const Report& report);
    void warn_of_unreached(Report& report) const;
    std::string candidate_of(const SiteReport& entry) const;
    std::vector<const runtime::Site*> coarser_inside(const SiteReport& entry) const;
    std::vector<std::string> unverified(const Report& report) const;
    void say_unmeasured(const runtime::VerificationContext& tried,
                        const std::vector<runtime::SizeVariant>& accepted);
    bool refuse_failed(Kernelized& made, const std::map<std::string, runtime::Verdict>& verdicts);

    const Request& request_;
    const Channel& channel_;
    Mapping mapping_;
    KernelizeOptions options_;
    runtime::Inputs inputs_;
    bool was_marked_ = false;
    bool said_unmeasured_ = false;
    bool replaced_any_ = false;                       // before anything was judged
    std::unique_ptr<runtime::PlannedModel> planned_;  // how the model was made
    // Verdicts by site and chosen candidate. An empty candidate holds the last verdict of a site
    // that was put back.
    std::map<std::pair<std::string, std::string>, runtime::Verdict> verdicts_;
};

// A verification in a report: "shapes", the given ones and others that the original accepts, and
// "tolerance", the factor on the error that the rule allows.
base::Json verified_on(const runtime::VerificationContext& context);

}  // namespace twinkle::worker
