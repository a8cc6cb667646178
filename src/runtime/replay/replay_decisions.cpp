#include "runtime/replay/replay_decisions.h"

#include "base/json.h"
#include "base/text.h"
#include "runtime/model/graphs_mark.h"
#include "runtime/replay/replay_log.h"
#include "twinkle/error.h"

#include <algorithm>
#include <stdexcept>

namespace twinkle::runtime {

namespace {

constexpr base::JsonLimits limits{.bytes = 1u << 20, .depth = 2};
constexpr std::size_t longest = 1000;
constexpr int calls_until_captured = 3;

[[noreturn]] void malformed(const std::string& why) {
    throw Error(ErrorCode::malformed, {.what = "the model's mark for graphs is damaged",
                                       .where = "",
                                       .why = why,
                                       .hint = "kernelize the original model again"});
}

}  // namespace

std::optional<bool> ReplayDecisions::of(const std::string& shapes) const {
    const auto known = replayed_.find(shapes);
    return known != replayed_.end() ? std::optional(known->second) : std::nullopt;
}

void ReplayDecisions::add(const std::string& shapes, bool replayed) {
    if (replayed_.size() < most && shapes.size() <= longest) {
        replayed_.insert_or_assign(shapes, replayed);
    }
}

std::string ReplayDecisions::text() const {
    return base::json_line(base::Json(replayed_));
}

ReplayDecisions ReplayDecisions::parse(std::string_view text) {
    const base::Json json = base::parse_json(text, "mark for graphs", limits);
    if (!json.is_object() || json.size() > most) {
        malformed("it has no table of shapes");
    }
    ReplayDecisions decisions;
    for (const auto& [shapes, replayed] : json.items()) {
        if (!replayed.is_boolean() || shapes.size() > longest) {
            malformed("a shape is replayed, or is not: true or false");
        }
        decisions.add(shapes, replayed.get<bool>());
    }
    return decisions;
}

std::vector<DecidedShape> decide_replays(const torch::jit::Module& model,
                                         const std::vector<Values>& inputs,
                                         const ReplayDevice& device) {
    if (const FoundBackend found = device.find_backend(); !found.backend) {
        throw std::runtime_error(found.why_none);
    }
    const auto clock = device.clock ? device.clock : std::function<double()>(steady_seconds);
    const auto run = [&](const Values& values) { return model.get_method("forward")(values); };
    std::vector<DecidedShape> all;
    for (const Values& values : inputs) {
        DecidedShape decided{shapes_text(values), false, "it cannot be captured", {}};
        const ModelGraphs::Host host{
            .run = run,
            .judge = [&](const InputKey&, const Values& given, const Contestant& replay) {
                const ContestResult result =
                    replay_contest([&] { return run(given); }, replay, clock);
                decided.replayed = result.objection.empty();
                decided.why = result.objection;
                decided.times = result.times;
                return std::string("it is measured alone");  // and dropped again
            }};
        ModelGraphs graphs(GraphModel(model._ivalue(), unmarked_forward(model)),
                           ReplaySettings().limits, device.type, device.find_backend, host);
        for (int call = 0; call < calls_until_captured; ++call) {
            graphs.replayed(values);
        }
        const auto reasons = graphs.statistics().reasons;
        if (decided.times.plain == 0 && !reasons.empty()) {
            decided.why = reasons.begin()->first;
        }
        all.push_back(std::move(decided));
    }
    return all;
}

}  // namespace twinkle::runtime
