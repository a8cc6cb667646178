#pragma once
// Candidates that are measured together with those in the model, beside them: where a kind of call
// has more candidates than the model has sites for them, each further one would take another run of
// the model, and times of two runs compare badly.

#include "runtime/verify/verification_context.h"
#include "worker/kernelizing.h"
#include "worker/site_tuning.h"

#include <map>
#include <memory>
#include <string>

namespace twinkle::worker {

class OtherCandidates {
public:
    // Makes the model again for as long as its sites have others to measure, up to eight times. The
    // plan is then as it was, but for what could not be made, and `made` still what it makes.
    OtherCandidates(Kernelizing& kernelizing, const Kernelized& made, SiteTuning& tuning);

    // Adds them to what is judged and measured.
    void add_to(runtime::VerificationContext& context) const;
    // Of all verdicts, notes those of these candidates; one that is not right is refused.
    void note(const std::map<std::string, runtime::Verdict>& verdicts, const Report& report,
              runtime::Plan& plan, SiteTuning& tuning) const;

private:
    struct Candidate {
        runtime::OtherCandidate made;
        // What its code calls lies in that of the model that it was made in.
        std::shared_ptr<torch::jit::CompilationUnit> code;
        runtime::Choice choice;
        runtime::SizeGroups sizes;
    };

    // Adds those that the model has now. Returns whether there is any.
    bool add(const Kernelized& made, SiteTuning& tuning, runtime::Plan& plan);

    std::map<std::string, Candidate> all_;  // by name
};

}  // namespace twinkle::worker
