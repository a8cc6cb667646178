#include "worker/measurements.h"

#include "base/file.h"
#include "base/sha256.h"
#include "runtime/layers/host_attributes.h"
#include "runtime/tuning/own_environment.h"

#include <algorithm>
#include <variant>

namespace twinkle::worker {

using tuning::Entry;

namespace {

tuning::ProcessFacts with_threads(int threads) {
    tuning::ProcessFacts facts = runtime::process_facts();
    facts.threads = threads;
    return facts;
}

// The ratio of the candidate's time to the original's, turn by turn.
std::vector<double> ratios_of(const runtime::Samples& times) {
    constexpr double least_us = 1e-3;
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(times[0].size(), times[1].size()); ++i) {
        ratios.push_back(times[1][i] / std::max(times[0][i], least_us));
    }
    return ratios;
}

}  // namespace

Measurements::Measurements(tuning::Store store, const std::string& platform, int threads)
    : threads_(threads),
      noise_(tuning::process_noise(platform, threads)),
      store_(std::move(store)),
      environment_(
          tuning::environment_of(platform, target::this_machine(), with_threads(threads))) {}

void Measurements::look_up(const Invocation& invocation) {
    if (!looked_up_.insert(invocation.hash()).second) {
        return;
    }
    auto found = store_.find(environment_, invocation);
    for (Entry& entry : found.entries) {
        tuning::join(known_, std::move(entry));
    }
    for (const auto& [file, rejected] : found.rejected) {
        warnings_.insert(base::display_path(file) + ": " + rejected.why);
    }
}

bool Measurements::take(const Invocation& invocation, std::chrono::seconds duration) {
    const std::string hash = invocation.hash();
    if (leases_.contains(hash)) {
        return true;
    }
    auto attempt = store_.lease(environment_, invocation, duration);
    if (!attempt.lease) {
        return attempt.holder.empty();  // where no lease can be had, none is asked for
    }
    // Another run may have measured it since it was looked up.
    leases_.emplace(hash, *std::move(attempt.lease));
    looked_up_.erase(hash);
    look_up(invocation);
    return true;
}

const Entry* Measurements::find(const Invocation& invocation,
                                const tuning::Candidate& candidate) const {
    const auto found = known_.find({environment_.id(), invocation.hash(), candidate.id()});
    return found != known_.end() ? &found->second : nullptr;
}

void Measurements::measured(const Invocation& invocation, const tuning::Candidate& original,
                            const tuning::Candidate& candidate, const runtime::Samples& times) {
    const Entry* before = find(invocation, original);
    std::int64_t baseline = before != nullptr ? before->times.median : 0;
    if (baseline == 0) {  // it was never measured, or had a problem
        const double median = runtime::spread_of(times[0]).median;
        tuning::Times measured =
            tuning::bounded_median(median, 0, times[0].size(), noise_.without_constant());
        baseline = measured.baseline = measured.median;
        put({environment_, invocation, original, measured}, true);
    }
    const double original_us = static_cast<double>(baseline) / 1000;
    const std::vector<double> ratios = ratios_of(times);
    const runtime::Spread ratio = runtime::spread_of(ratios);
    tuning::Times measured =
        tuning::bounded_median(original_us * ratio.median,
                               original_us * (ratio.upper - ratio.lower), ratios.size(), noise_);
    measured.baseline = baseline;
    put({environment_, invocation, candidate, measured}, true);
}

void Measurements::banned(const Invocation& invocation, const tuning::Candidate& candidate,
                          const std::string& why, bool remember) {
    put({environment_, invocation, candidate, {}, why}, remember);
}

void Measurements::put(Entry entry, bool remember) {
    const std::string problem = remember ? store_.put(entry) : "";
    if (!problem.empty()) {
        warnings_.insert("what was measured is not remembered in " +
                         base::display_path(store_.root()) + ": " + problem);
    }
    const auto identity = entry.identity();
    const std::string text = entry.text();
    tuning::join(known_, std::move(entry));
    if (known_.at(identity).text() == text) {  // else the store knows it better
        new_.insert(identity);
    }
}

tuning::Candidate candidate_of(const runtime::Choice& choice) {
    tuning::Candidate candidate;
    if (const auto* layer = choice.as<runtime::LayerChoice>()) {
        candidate.cfg["layer"] = layer->candidate->layer;
        for (const auto& [name, value] : layer->binding->attributes) {
            candidate.cfg["attribute " + name] = runtime::to_text(value);
        }
    }
    for (const auto& [name, value] : choice.cfg) {
        std::visit([&, &name = name](const auto& given) { candidate.cfg[name] = given; }, value);
    }
    const FunctionCandidate* function = choice.implementation();
    if (function != nullptr) {
        candidate.cfg[function->op.empty() ? "function" : "operator"] =
            function->op.empty() ? function->function : function->op;
        candidate.build = base::sha256_hex(function->source);
    }
    if (choice.kernel != nullptr) {
        candidate.cfg["kernel"] = choice.kernel->name.substr(0, choice.kernel->name.find('@'));
        candidate.build = choice.kernel->build_id();
    }
    return candidate;
}

}  // namespace twinkle::worker
