#include "runtime/plan/prove_inlined.h"

#include "runtime/convert/moved_model.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/graph/past_runs.h"
#include "runtime/model/inputs.h"
#include "runtime/plan/stand_ins.h"
#include "runtime/proof/call_schema.h"
#include "runtime/selection/candidates.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// The bytes of its tensors, and of those that freezing has made constants.
std::uint64_t bytes_of(const jit::Module& model) {
    std::uint64_t bytes = 0;
    for (const at::Tensor& parameter : model.parameters()) {
        bytes += parameter.nbytes();
    }
    for (const jit::Node* constant : tensor_constants(model)) {
        bytes += constant->t(c10::attr::value).nbytes();
    }
    return bytes;
}

// Has no candidates where nothing can replace its function here; notes those that can.
Question question_about(const Job& job, StandIns& stand_ins, InlinedGraph& graph,
                        const TracedRun& run, std::vector<const void*>& ids, Proofs& proofs) {
    const MappedFunction& function = job.mapping.functions[run.function];
    const Candidates candidates = candidates_for(job.mapping, function, job.context);
    Question question;
    if (!candidates.first()) {
        return question;
    }
    c10::FunctionSchema like("call", "", {}, {});
    for (const RunSplit& split : graph.code.splits(run)) {
        auto& regions = question.splits.emplace_back();
        for (const RunPart& part : split) {
            regions.push_back(graph.code.close(graph.code.call(run, part)));
            like = regions.back() ? call_schema(*regions.back()) : like;
        }
    }
    for (const Candidate& one : candidates.all) {
        if (!one.serves()) {
            continue;
        }
        const auto& substitutes = stand_ins.substitutes().of(
            one.choice, graph.instances.front().module, like, function.full_name());
        if (substitutes) {
            question.candidates.push_back(&*substitutes);
            ids.push_back(one.choice.id());
        } else {
            proofs.unusable.emplace(one.choice.implementation(), substitutes.error());
        }
    }
    return question;
}

// Runs a copy, because a run may change what a model holds; the code is shared.
void run_model(const Job& job) {
    const torch::NoGradGuard no_grad;
    const jit::GraphOptimizerEnabledGuard unoptimized(false);
    discard_past_runs(job.model);
    Inputs inputs = deep_copy({job.options.inputs, job.options.named_inputs});
    const auto device = job.options.kernels_in_children ? job.options.prove_on : std::nullopt;
    if (device) {
        move_to(inputs, *device);
    }
    at::manual_seed(0);
    const jit::Module copy = device ? moved_to(job.model, *device) : job.model.deepcopy();
    copy.get_method("forward")(inputs.positional, inputs.named);
    discard_past_runs(job.model);
}

std::vector<Answer> answers_to(const Job& job, const std::vector<Question>& questions) {
    const auto run = [&job] { run_model(job); };
    if (!job.options.kernels_in_children) {
        return prove_calls(questions, run);
    }
    const auto& device = job.options.prove_on;
    const auto limits = device && !device->is_cpu()
                            ? SandboxLimits::for_bytes_on_gpu(bytes_of(job.model))
                            : SandboxLimits::for_bytes(bytes_of(job.model));
    return prove_calls_in_child(questions, run, limits, device);
}

}  // namespace

Proofs prove(const Job& job, StandIns& stand_ins, std::vector<InlinedGraph>& graphs) {
    Proofs proofs;
    if ((job.options.inputs.empty() && job.options.named_inputs.empty()) || mapping_disabled()) {
        return proofs;
    }
    std::vector<Question> questions;
    std::vector<const TracedRun*> runs;
    for (InlinedGraph& graph : graphs) {
        for (const TracedRun& run : graph.code.runs()) {
            std::vector<const void*> ids;
            Question question = question_about(job, stand_ins, graph, run, ids, proofs);
            if (!ids.empty()) {
                questions.push_back(std::move(question));
                runs.push_back(&run);
                proofs.of[&run].candidates = std::move(ids);
            }
        }
    }
    if (questions.empty()) {
        return proofs;
    }
    job.observe("prove", "how to call what a trace has inlined");
    auto answers = answers_to(job, questions);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        proofs.of.at(runs[i]).answer = std::move(answers.at(i));
    }
    return proofs;
}

}  // namespace twinkle::runtime
