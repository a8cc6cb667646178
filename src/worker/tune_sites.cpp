#include "worker/tune_sites.h"

#include "runtime/plan/replan.h"
#include "runtime/replay/captured_work.h"
#include "runtime/trial/patience.h"
#include "runtime/tuning/site_survey.h"
#include "runtime/verify/two_processes.h"
#include "twinkle/device.h"
#include "worker/more_inputs.h"
#include "worker/other_candidates.h"
#include "worker/site_tuning.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace twinkle::worker {

namespace {

constexpr std::size_t runs_if_lost = 5;

CallFacts facts_of(const Request& request, const runtime::VerificationContext& context) {
    CallFacts facts{get_device_platform(context.device.value_or(at::kCPU)),
                    context.gradients ? RunMode::forward : RunMode::inference, request.tolerance};
    facts.shard = {static_cast<std::size_t>(request.shard),
                   static_cast<std::size_t>(request.shards)};
    facts.captured = context.capture != nullptr;
    return facts;
}

// A model that is to be replayed as CUDA graphs: its sites are measured as parts of one.
void capture_sites(bool graphs, runtime::VerificationContext& context) {
    if (graphs && context.device && !context.gradients) {
        context.capture = runtime::work_capturer(runtime::cuda_graph_backend, *context.device);
        context.limits.confinement.readable.push_back(runtime::cuda_graphs_file());
    }
}

void add_sizes(const Request& request, runtime::VerificationContext& context) {
    if (request.sizes || !request.tune_sizes.empty()) {
        const auto sizes =
            runtime::tuned_sizes(context.inputs, request.tune_sizes, next_number(context.sizes));
        context.sizes.insert(context.sizes.end(), sizes.begin(), sizes.end());
    }
}

std::size_t count_of(const std::map<std::string, runtime::SizeGroups>& groups) {
    std::size_t count = 0;
    for (const auto& [name, group] : groups) {
        count += group.timed.size();
    }
    return count;
}

std::vector<std::string> names_of(const std::map<std::string, runtime::SizeGroups>& groups) {
    std::vector<std::string> names;
    for (const auto& [name, group] : groups) {
        names.push_back(name);
    }
    return names;
}

// Leaves out what was found to be wrong, of candidates or of their sizes.
void keep_right(std::map<std::string, runtime::SizeGroups>& groups,
                const std::map<std::string, runtime::Verdict>& verdicts) {
    for (auto& [name, group] : groups) {
        const auto verdict = verdicts.find(name);
        if (verdict == verdicts.end() || !verdict->second.right) {
            group.timed.clear();
            continue;
        }
        std::erase_if(group.timed, [&by_size = verdict->second.by_size](std::size_t size) {
            return !by_size.at(size).problem.empty();
        });
    }
    std::erase_if(groups, [](const auto& one) { return one.second.timed.empty(); });
}

// Another run measures what is missing. It is waited for as long as this one could have measured.
void wait_for_others(SiteTuning& tuning, std::chrono::steady_clock::time_point patience) {
    constexpr std::chrono::milliseconds pause(100);
    if (std::chrono::steady_clock::now() >= patience) {
        tuning.stop_waiting();
        return;
    }
    std::this_thread::sleep_for(pause);
    tuning.look_again();
}

// With `strict`, fails if a site would keep its original only because every candidate is wrong,
// found now or earlier.
void refuse_all_wrong(Kernelizing& kernelizing, const SiteTuning& tuning) {
    const auto wrong =
        kernelizing.is_strict() ? tuning.all_wrong(kernelizing.plan()) : std::nullopt;
    if (wrong) {
        kernelizing.throw_failed(wrong->first, wrong->second);
    }
}

// Notes what was found of the sites as they are, and of other candidates; what is not right gives
// way.
void note(const std::map<std::string, runtime::Verdict>& verdicts, const OtherCandidates& others,
          Kernelizing& kernelizing, Kernelized& made, SiteTuning& tuning) {
    others.note(verdicts, made.report, kernelizing.plan(), tuning);
    for (const auto& [name, verdict] : verdicts) {
        const runtime::Site* site = runtime::reported_site(kernelizing.plan(), name);
        if (site != nullptr && site->choice) {
            tuning.note(name, *site->choice, verdict);
        }
    }
    refuse_all_wrong(kernelizing, tuning);
    kernelizing.drop_wrong(made, verdicts);
}

// Measures on a CPU in two processes, half of the time in each; the first compares values.
std::map<std::string, runtime::Verdict> measured(Kernelizing& kernelizing, const Kernelized& made,
                                                 runtime::VerificationContext& context,
                                                 double seconds, double budget_ms) {
    const int processes = context.device ? 1 : 2;
    context.measuring = std::chrono::duration<double>(seconds / processes);
    context.sampling = runtime::Sampling{.least_runs = runtime::enough_turns,
                                         .runs_if_lost = runs_if_lost,
                                         .budget_ms = budget_ms / processes};
    auto verdicts = kernelizing.judge(made, context, names_of(context.by_size));
    if (processes == 1) {
        return verdicts;
    }
    keep_right(context.by_size, verdicts);
    if (!context.by_size.empty()) {
        context.compares = false;
        runtime::add_measured(verdicts,
                              kernelizing.judge(made, context, names_of(context.by_size)));
        context.compares = true;
    }
    return verdicts;
}

// Runs the model, and measures what its sites have now, and other candidates beside them.
// Whether there was any. `left`: seconds of the budget.
bool measure(Kernelizing& kernelizing, Kernelized& made, runtime::VerificationContext& context,
             SiteTuning& tuning, const Channel& channel, double& left) {
    const auto remaining = static_cast<double>(tuning.remaining(kernelizing.plan()));
    context.by_size = tuning.to_measure(made.report, kernelizing.plan());
    if (context.by_size.empty()) {
        return false;
    }
    for (const auto& [site, sizes] : context.by_size) {
        tuning.hand_over(site, *runtime::reported_site(kernelizing.plan(), site)->choice,
                         sizes.timed);
    }
    const OtherCandidates others(kernelizing, made, tuning);
    others.add_to(context);
    // The time left is shared by all that remains; half of each share is for warming up.
    const double seconds = left * static_cast<double>(count_of(context.by_size)) / remaining;
    const double budget_ms = 500 * left / remaining;
    channel.stage("tune", std::to_string(context.by_size.size()) + " candidates");
    const auto begin = std::chrono::steady_clock::now();
    const auto verdicts = measured(kernelizing, made, context, seconds, budget_ms);
    // What is decided early leaves its time to the others.
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    left = std::max(left - std::min(seconds, spent.count()), 0.0);
    context.by_size.clear();
    context.others.clear();
    note(verdicts, others, kernelizing, made, tuning);
    return true;
}

// Of candidates that hang each costs a silence: what the original took says how long that must be.
runtime::Survey survey(const Kernelized& made, const std::vector<std::string>& sites,
                       runtime::VerificationContext& context, const Request& request,
                       const Channel& channel) {
    using Clock = std::chrono::steady_clock;
    while (true) {
        try {
            const auto begin = Clock::now();
            auto found = runtime::survey_sites(context, made.model, sites);
            runtime::shorten_silence(
                context.limits,
                std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin));
            return found;
        } catch (const Error& error) {
            if (!request.inputs_recorded || error.code() != ErrorCode::malformed ||
                !use_next_recorded(channel, error.details().why, context)) {
                throw;
            }
        }
    }
}

}  // namespace

void tune_sites(Kernelizing& kernelizing, Kernelized& made, runtime::VerificationContext& context,
                const Request& request, const Channel& channel) {
    double left = request.duration.value_or(usual_tuning_seconds);
    capture_sites(request.graphs || kernelizing.was_marked_for_graphs(), context);
    // Twice the time for measuring, as values are compared, too.
    SiteTuning tuning(facts_of(request, context),
                      std::chrono::seconds(60 + static_cast<long>(2 * left)));
    add_sizes(request, context);
    const auto patience = std::chrono::steady_clock::now() +
                          std::chrono::milliseconds(static_cast<std::int64_t>(1000 * left));
    context.steps = context.gradients;
    const auto usual_silence = context.limits.silence;
    bool waited = false;
    while (true) {
        if (const auto unknown = tuning.unknown(made.report); !unknown.empty()) {
            channel.stage("survey", std::to_string(unknown.size()) + " sites");
            const auto found = survey(made, unknown, context, request, channel);
            kernelizing.keep_sizes(context, found.sizes);
            tuning.add(unknown, found, kernelizing.plan());
        }
        if (tuning.configure(made.model, made.report, kernelizing.plan())) {
            continue;
        }
        refuse_all_wrong(kernelizing, tuning);
        if (tuning.change(kernelizing.plan())) {
            kernelizing.make_again(made);
            continue;
        }
        if (measure(kernelizing, made, context, tuning, channel, left)) {
            continue;
        }
        if (tuning.try_alike()) {
            continue;
        }
        if (!tuning.waits(kernelizing.plan())) {
            break;
        }
        if (!std::exchange(waited, true)) {
            channel.stage("wait", "for another run, which measures the same");
        }
        wait_for_others(tuning, patience);
    }
    tuning.release();
    context.sampling.reset();
    context.capture = {};
    context.steps = false;
    context.limits.silence = usual_silence;
    kernelizing.verify_sites(made, context);
    tuning.enter(made.report, kernelizing.plan());
}

}  // namespace twinkle::worker
