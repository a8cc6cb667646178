#include "child/child_process.h"
#include "runtime/replay/captured_work.h"
#include "runtime/replay/same_results.h"
#include "runtime/verify/other_layers.h"
#include "runtime/verify/run_error.h"
#include "runtime/verify/timing.h"
#include "tuning/file_store.h"
#include "twinkle/autotune.h"
#include "twinkle/error.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>

namespace twinkle {

namespace {

using detail::Trial;
using runtime::Samples;
using Tensors = std::vector<at::Tensor>;

constexpr std::size_t first_turns = 3;  // after which what has surely lost is left out
constexpr double surely = 1.1;

std::function<void()> waiting_for(const c10::Device& device) {
    if (device.is_cpu()) {
        return {};
    }
    return [device] {
        const c10::impl::VirtualGuardImpl guard(device.type());
        guard.synchronizeDevice(guard.getDevice().index());
    };
}

c10::Device device_of(const Tensors& tensors) {
    return tensors.empty() ? c10::Device(c10::kCPU) : tensors.front().device();
}

c10::IValue as_value(const Tensors& tensors) {
    std::vector<c10::IValue> values(tensors.begin(), tensors.end());
    return c10::ivalue::Tuple::create(std::move(values));
}

// Copies tensors. An undefined one, a gradient that an operation does not have, becomes empty.
Tensors copies_of(const Tensors& tensors) {
    Tensors copies;
    for (const at::Tensor& tensor : tensors) {
        copies.push_back(tensor.defined() ? tensor.detach().clone() : at::empty({0}));
    }
    return copies;
}

// The tensors of a call as they were before it.
class Inputs {
public:
    explicit Inputs(const Tensors& tensors) : tensors_(tensors), before_(copies_of(tensors)) {}

    // Which of them the call has written to is looked for after the first one.
    void look() {
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            if (!tensors_[i].equal(before_[i])) {
                written_.push_back(i);
            }
        }
    }
    void restore() const {
        for (const std::size_t i : written_) {
            at::Tensor tensor = tensors_[i].detach();
            tensor.copy_(before_[i]);
        }
    }
    // Restores whatever was written, whether it should have been or not.
    void restore_all() const {
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            if (!tensors_[i].equal(before_[i])) {
                at::Tensor tensor = tensors_[i].detach();
                tensor.copy_(before_[i]);
            }
        }
    }
    // What a call leaves: its results, and every input as it is now.
    c10::IValue left_by(Tensors results) const {
        results.insert(results.end(), tensors_.begin(), tensors_.end());
        return as_value(copies_of(results));
    }

private:
    const Tensors& tensors_;
    Tensors before_;
    std::vector<std::size_t> written_;
};

bool may_use_children(const Trial& trial, const AutotuneOptions& options) {
    return options.in_children && trial.cfgs.size() > 1 &&
           std::all_of(trial.tensors.begin(), trial.tensors.end(),
                       [](const at::Tensor& tensor) { return tensor.is_cpu(); });
}

// Bans what ends a child, or does not end in it.
void try_in_children(const Trial& trial, const AutotuneOptions& options, Measurement& measurement) {
    child::Limits limits;
    limits.silence = std::chrono::milliseconds(
        std::max<std::int64_t>(1, std::llround(1000 * options.child_seconds)));
    limits.total = std::chrono::milliseconds(0);
    limits.memory = 0;
    limits.confinement.none = true;  // it is this program's own code
    for (std::size_t next = 0; next < trial.cfgs.size();) {
        const auto work = [&](const child::Send& send) {
            at::set_num_threads(1);  // of others that have worked before it has none
            for (std::size_t i = next; i < trial.cfgs.size(); ++i) {
                try {
                    trial.run(i);
                } catch (const std::exception&) {
                    send(std::to_string(i));  // it throws in this process again, and is banned then
                    continue;
                }
                send(std::to_string(i));
            }
        };
        const auto outcome = child::run(limits, work, [&](std::string_view) { ++next; });
        if (next >= trial.cfgs.size() || outcome.finished) {
            return;
        }
        if (next == 0) {  // not even what is right by definition runs there
            return;
        }
        measurement.candidates[next++].problem = outcome.why;
    }
}

// Bans what is wrong. The first one's exceptions pass: without it there is no call.
void compare(const Trial& trial, Inputs& inputs, Measurement& measurement) {
    const c10::IValue expected = inputs.left_by(trial.run(0));
    inputs.look();
    inputs.restore();
    for (std::size_t i = 1; i < trial.cfgs.size(); ++i) {
        if (!measurement.candidates[i].problem.empty()) {
            continue;
        }
        try {
            if (!runtime::same_results(inputs.left_by(trial.run(i)), expected)) {
                measurement.candidates[i].problem = "wrong values";
            }
        } catch (const std::exception& error) {
            measurement.candidates[i].problem = "it threw: " + runtime::run_error(error.what());
        }
        inputs.restore_all();
    }
}

// What is timed of each candidate: a call, or a graph that holds several.
struct Timed {
    std::map<std::size_t, std::function<void()>> runs;
    std::size_t calls = 1;
};

Timed timed_calls(const Trial& trial, const std::vector<std::size_t>& right) {
    Timed timed;
    for (const std::size_t i : right) {
        timed.runs[i] = [&trial, i] { trial.run(i); };
    }
    return timed;
}

// A candidate that cannot be captured is banned. Where the first cannot, no call is.
Timed timed_graphs(const Trial& trial, const std::vector<std::size_t>& right,
                   Measurement& measurement) {
    Timed timed = timed_calls(trial, right);
    const auto capture =
        runtime::work_capturer(runtime::cuda_graph_backend, device_of(trial.tensors));
    try {
        const auto first = capture(timed.runs.at(0), 0);
        timed = {{{0, first.run}}, first.times};
    } catch (const std::exception&) {
        return timed;
    }
    for (auto i = right.begin() + 1; i != right.end(); ++i) {
        try {
            timed.runs[*i] = capture([&trial, i = *i] { trial.run(i); }, timed.calls).run;
        } catch (const std::exception& error) {
            measurement.candidates[*i].problem = runtime::cannot_be_captured(error.what());
        }
    }
    return timed;
}

void append(Samples& all, const std::vector<std::size_t>& places, const Samples& more) {
    for (std::size_t i = 0; i < places.size(); ++i) {
        auto& own = all[places[i]];
        own.insert(own.end(), more[i].begin(), more[i].end());
    }
}

// Drops each candidate whose best run is surely slower than the worst of the fastest.
void leave_out_losers(std::vector<std::size_t>& left, const Samples& samples) {
    const auto median = [&](std::size_t i) { return runtime::spread_of(samples[i]).median; };
    const std::size_t fastest =
        *std::min_element(left.begin(), left.end(),
                          [&](std::size_t a, std::size_t b) { return median(a) < median(b); });
    const double worst = *std::max_element(samples[fastest].begin(), samples[fastest].end());
    std::erase_if(left, [&](std::size_t i) {
        return *std::min_element(samples[i].begin(), samples[i].end()) > surely * worst;
    });
}

Samples time_candidates(const Trial& trial, const Timed& timed, const Inputs& inputs,
                        const AutotuneOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    const auto exhausted = [&] {
        const std::chrono::duration<double, std::milli> spent =
            std::chrono::steady_clock::now() - start;
        return options.budget_ms > 0 && spent.count() >= options.budget_ms;
    };
    const c10::Device device = device_of(trial.tensors);
    const auto wait = waiting_for(device);
    const auto others = runtime::other_layers(device);
    const auto between = [&] {
        inputs.restore();
        others();
    };
    const auto all_turns = static_cast<std::size_t>(std::max(options.num_iters, 1));
    std::vector<std::size_t> left;
    for (const auto& [i, run] : timed.runs) {
        left.push_back(i);
    }
    Samples samples(trial.cfgs.size());
    std::size_t warm_up = static_cast<std::size_t>(std::max(options.num_warmup, 0));
    for (std::size_t turns = 0; turns < all_turns && !exhausted();) {
        const std::size_t some = std::min(first_turns, all_turns - turns);
        std::vector<std::function<void()>> contestants;
        for (const std::size_t i : left) {
            contestants.push_back(timed.runs.at(i));
        }
        append(samples, left,
               runtime::time_in_turns(contestants, {.warm_up = warm_up, .runs = some, .wait = wait},
                                      between));
        turns += some;
        warm_up = 0;
        leave_out_losers(left, samples);
        if (trial.cfgs.size() > 1 && left.size() == 1) {  // nobody is left to compare it with
            break;
        }
    }
    return samples;
}

}  // namespace

Measurement detail::measure(const Trial& trial, const AutotuneOptions& options) {
    const at::NoGradGuard no_gradients;
    Measurement measurement;
    for (const std::string& cfg : trial.cfgs) {
        measurement.candidates.push_back({.cfg = cfg});
    }
    if (may_use_children(trial, options)) {
        try_in_children(trial, options, measurement);
    }
    Inputs inputs(trial.tensors);
    compare(trial, inputs, measurement);
    std::vector<std::size_t> right;
    for (std::size_t i = 0; i < trial.cfgs.size(); ++i) {
        if (measurement.candidates[i].problem.empty()) {
            right.push_back(i);
        }
    }
    const bool graphs = trial.captured && !device_of(trial.tensors).is_cpu();
    const Timed timed =
        graphs ? timed_graphs(trial, right, measurement) : timed_calls(trial, right);
    const Samples samples = time_candidates(trial, timed, inputs, options);
    inputs.restore();
    for (const std::size_t i : right) {
        if (!samples[i].empty()) {
            MeasuredCfg& candidate = measurement.candidates[i];
            const runtime::Spread spread = runtime::spread_of(samples[i]);
            const auto calls = static_cast<double>(timed.calls);
            candidate.lower_us = spread.lower / calls;
            candidate.median_us = spread.median / calls;
            candidate.upper_us = spread.upper / calls;
            candidate.runs = samples[i].size();
        }
    }
    measurement.best = tuning::best_of(measurement, trial.build);
    return measurement;
}

BenchmarkTimes benchmark(const std::function<void()>& function, const BenchmarkOptions& options,
                         const c10::Device& device) {
    const Samples samples = runtime::time_in_turns(
        {function}, {.warm_up = static_cast<std::size_t>(std::max(options.num_warmup, 0)),
                     .runs = static_cast<std::size_t>(std::max(options.num_iters, 1)),
                     .wait = waiting_for(device)});
    const runtime::Spread spread = runtime::spread_of(samples.at(0));
    return {spread.lower, spread.median, spread.upper, samples[0].size()};
}

}  // namespace twinkle
