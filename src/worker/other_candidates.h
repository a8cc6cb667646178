#pragma once
// Candidates that are measured together with those in the model, beside them: where a kind of call
// has more candidates than the model has sites for them, each further one would take another run of
// the model, and times of two runs compare badly.

#include "runtime/verify/verification_context.h"
#include "worker/kernelizing.h"
#include "worker/site_tuning.h"

#include <map>
#include <string>

namespace twinkle::worker {

class OtherCandidates {
public:
    // Makes the model again for as long as its sites have others to measure. The plan is then as
    // it was, and `made` still what it makes.
    OtherCandidates(Kernelizing& kernelizing, const Kernelized& made, SiteTuning& tuning);

    // To the context's own.
    void add_to(runtime::VerificationContext& context) const;
    // Of all verdicts, those of these candidates.
    void note(const std::map<std::string, runtime::Verdict>& verdicts, SiteTuning& tuning) const;

private:
    struct Candidate {
        runtime::OtherCandidate made;
        runtime::Choice choice;
        runtime::SizeGroups sizes;
    };

    // Those that the model has now. Whether there is any.
    bool add(const Kernelized& made, SiteTuning& tuning, runtime::Plan& plan);

    std::map<std::string, Candidate> all_;  // by name
};

}  // namespace twinkle::worker
