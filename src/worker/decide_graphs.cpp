#include "worker/decide_graphs.h"

#include "base/text.h"
#include "runtime/replay/graph_backend.h"
#include "runtime/replay/replay_decisions.h"
#include "runtime/verify/originals.h"
#include "runtime/verify/run_error.h"

namespace twinkle::worker {

using base::Json;
using runtime::Values;

namespace {

// The arguments of forward(), as a call passes them; none: not by position.
std::optional<Values> arguments_of(const torch::jit::Module& model, const runtime::Inputs& inputs) {
    if (!inputs.named.empty()) {
        return std::nullopt;
    }
    Values values = inputs.positional;
    const auto& arguments = model.get_method("forward").function().getSchema().arguments();
    for (std::size_t i = values.size() + 1; i < arguments.size(); ++i) {
        if (!arguments[i].default_value()) {
            return std::nullopt;
        }
        values.push_back(*arguments[i].default_value());
    }
    return values;
}

// Runs in the child.
void decide(const torch::jit::Module& made, const runtime::VerificationContext& given,
            const runtime::Send& send) {
    const torch::NoGradGuard no_grad;
    const runtime::VerificationContext context = runtime::in_place(given);
    const torch::jit::Module model = runtime::in_place(made, context);
    std::vector<Values> all;
    const auto add = [&](const runtime::Inputs& inputs) {
        if (auto values = arguments_of(model, inputs)) {
            all.push_back(*std::move(values));
        }
    };
    add(context.inputs);
    for (const runtime::SizeVariant& size : context.sizes) {
        if (size.tuned) {
            add(size.of(context.inputs));
        }
    }
    for (const Values& values : all) {
        try {
            for (const auto& one : runtime::decide_replays(model, {values})) {
                send(base::json_line({{"inputs", one.shapes},
                                      {"replayed", one.replayed},
                                      {"because", one.why},
                                      {"plain_us", one.times.plain * 1e6},
                                      {"replay_us", one.times.replay * 1e6}}));
            }
        } catch (const std::exception& error) {
            send(base::json_line({{"problem", runtime::run_error(error.what())}}));
        }
    }
}

}  // namespace

DecidedGraphs decide_graphs(const torch::jit::Module& model,
                            const runtime::VerificationContext& context) {
    DecidedGraphs decided;
    runtime::ReplayDecisions decisions;
    runtime::SandboxLimits limits = context.limits;
    limits.confinement.readable.push_back(runtime::cuda_graphs_file());
    const auto outcome = runtime::run_in_sandbox(
        limits, [&](const auto& send) { decide(model, context, send); },
        [&](std::string_view line) {
            const Json json = base::parse_json(line, "replays");
            if (json.contains("problem")) {
                decided.problem = base::printable(json["problem"].get<std::string>());
                return;
            }
            const auto shapes = base::printable(json.at("inputs").get<std::string>());
            const bool replayed = json.at("replayed").get<bool>();
            decisions.add(shapes, replayed);
            decided.shapes.push_back(
                {{"inputs", shapes},
                 {"replayed", replayed},
                 {"because", base::printable(json.at("because").get<std::string>())},
                 {"plain_us", json.at("plain_us").get<double>()},
                 {"replay_us", json.at("replay_us").get<double>()}});
        });
    if (!outcome.finished) {
        decided.problem = outcome.why;
    }
    decided.text = decisions.empty() ? "" : decisions.text();
    return decided;
}

}  // namespace twinkle::worker
