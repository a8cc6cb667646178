#pragma once
// Proves on one run of the model how to replace the calls that a trace has inlined.

#include "runtime/graph/keep_reason.h"
#include "runtime/plan/job.h"
#include "runtime/proof/prove_calls.h"
#include "runtime/trace/inlined_code.h"

#include <map>
#include <vector>

namespace twinkle::runtime {

class StandIns;

struct InlinedGraph {
    // Instances share their code: each of those listed has its own sites.
    std::vector<Instance> instances;
    torch::jit::Function* method = nullptr;
    InlinedCode code;
};

// What was proved of a run, and of which candidates (Choice::id), in the order of the answer's.
struct Proof {
    std::vector<const void*> candidates;
    Answer answer;
};

struct Proofs {
    std::map<const TracedRun*, Proof> of;  // none for a run: there was no proof
    // Candidates that cannot be compiled or loaded, so that nothing can be proved of them.
    std::map<const FunctionCandidate*, KeepReason> unusable;
};

// Empty without the job's inputs.
Proofs prove(const Job& job, StandIns& stand_ins, std::vector<InlinedGraph>& graphs);

}  // namespace twinkle::runtime
