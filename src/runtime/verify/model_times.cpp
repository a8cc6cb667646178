#include "runtime/verify/model_times.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "runtime/prepack/prepacked_weights.h"
#include "runtime/verify/child_judge.h"
#include "runtime/verify/contestant.h"
#include "runtime/verify/kept_state.h"
#include "runtime/verify/originals.h"
#include "twinkle/error.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace twinkle::runtime {

namespace {

using base::Json;
using Contestant = ModelTimes::Contestant;

constexpr const char* original_name = "original";
constexpr const char* kernelized_name = "kernelized";

std::vector<std::string> names_of(Contest contest) {
    switch (contest) {
        case Contest::all:
            return {original_name, "frozen original", kernelized_name, "frozen kernelized"};
        case Contest::as_they_are: return {original_name, kernelized_name};
        case Contest::frozen: return {kernelized_name, "frozen kernelized"};
    }
    return {};
}

std::string first_line(const std::exception& error) {
    const std::string text = error.what();
    return base::printable(text.substr(0, std::min<std::size_t>(text.find('\n'), 300)));
}

// A contestant; `model` is empty once it is out.
struct Entry {
    Contestant said;
    std::optional<torch::jit::Module> model;
};

Entry frozen(const std::string& name, const torch::jit::Module& model, bool training) {
    Entry entry{{"frozen " + name, {}, {}, {}}, std::nullopt};
    if (training) {
        entry.said.absent = "a model in training cannot be frozen";
        return entry;
    }
    try {
        entry.model = torch::jit::freeze(model);
    } catch (const std::exception& error) {
        entry.said.absent = "it cannot be frozen: " + first_line(error);
    }
    return entry;
}

// Its weights as twinkle::load lays them out; a copy, as other models share them.
torch::jit::Module as_loaded(const torch::jit::Module& model, const VerificationContext& context) {
    if (context.steps || !context.device.value_or(at::kCPU).is_cpu() ||
        !may_prepack_weights(model)) {
        return model;
    }
    torch::jit::Module copy = model.deepcopy();
    prepack_weights(copy);
    return copy;
}

// The original, if it takes part, is the first.
std::vector<Entry> enter_models(const VerificationContext& context,
                                const torch::jit::Module& kernelized, Contest contest,
                                const Send& send) {
    std::vector<Entry> entries;
    const auto enter = [&](const char* name, const torch::jit::Module& model,
                           const torch::jit::Module& to_freeze) {
        send(base::json_line({{"doing", name}}));
        entries.push_back({{name, {}, {}, {}}, model});
        if (contest != Contest::as_they_are) {
            send(base::json_line({{"doing", std::string("frozen ") + name}}));
            entries.push_back(frozen(name, to_freeze, context.steps));
        }
    };
    if (contest != Contest::frozen) {
        const torch::jit::Module original = open_original(context);
        share_parameters(original, kernelized);
        enter(original_name, original, original);
    }
    if (context.frozen && contest == Contest::as_they_are) {
        enter(kernelized_name, frozen_for(kernelized, context), kernelized);
        return entries;
    }
    const torch::jit::Module loaded = as_loaded(kernelized, context);
    // A file that is frozen holds weights as constants, which stay as they are.
    enter(kernelized_name, loaded, contest == Contest::frozen ? kernelized : loaded);
    return entries;
}

c10::IValue reference_of(const VerificationContext& context) {
    return run_seeded(open_exact(context), "forward", with_dtype(context.inputs, at::kDouble));
}

void compare_results(const VerificationContext& context, std::vector<Entry>& entries,
                     const Send& send) {
    KeptState state;
    for (const Entry& entry : entries) {
        if (entry.model) {
            state.add(*entry.model);
        }
    }
    const auto result_of = [&](const Entry& entry) {
        send(base::json_line({{"doing", entry.said.name}}));
        const c10::IValue result =
            run_seeded(*entry.model, "forward", deep_copy(context.inputs)).deepcopy();
        state.restore();
        return result;
    };
    const c10::IValue want = result_of(entries.front());
    const c10::IValue reference = reference_of(context);
    for (Entry& entry : entries) {
        if (!entry.model) {
            continue;
        }
        try {
            entry.said.comparison = compare(result_of(entry), want, reference, Norm::euclidean);
        } catch (const std::exception& error) {
            entry.said.absent = "it cannot be run: " + first_line(error);
            entry.model.reset();
        }
    }
}

void take_turns(const VerificationContext& context, std::vector<Entry>& entries, const Send& send,
                const SharedNumber& running_now) {
    const Calls calls = {{"forward", context.inputs}};
    std::vector<std::function<void()>> runs;
    std::vector<Contestant*> running;
    const auto alive = sign_of_life(send);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        Entry& entry = entries[i];
        if (entry.model) {
            // A contestant that crashes or hangs is the one announced last.
            send(base::json_line({{"doing", entry.said.name}}));
            runs.push_back([&running_now, i, run = contestant(*entry.model, calls, context.steps)] {
                running_now.leave(static_cast<int>(i));
                run();
            });
            runs.back()();
            running.push_back(&entry.said);
        }
    }
    send(base::json_line({{"doing", ""}}));
    Samples samples = time_in_turns(runs, *context.sampling, alive);
    for (std::size_t i = 0; i < running.size(); ++i) {
        running[i]->us = std::move(samples[i]);
    }
}

Json to_json(const Contestant& one) {
    const Comparison& values = one.comparison;
    return {{"name", one.name},
            {"absent", one.absent},
            {"error", std::min(values.error, 1e300)},  // infinity is no JSON number
            {"original", std::min(values.original_error, 1e300)},
            {"allowed", std::min(values.allowed, 1e300)},
            {"problem", values.problem},
            {"us", one.us}};
}

Contestant contestant_of(const Json& json) {
    return {json.at("name").get<std::string>(),
            base::printable(json.at("absent").get<std::string>()),
            {json.at("error").get<double>(),
             json.at("original").get<double>(),
             json.at("allowed").get<double>(),
             base::printable(json.at("problem").get<std::string>()),
             {}},
            json.at("us").get<std::vector<double>>()};
}

// Runs in the child. Sends {"doing"} before each step, then {"contestants"}, or {"fatal"}.
void measure(const VerificationContext& given, const torch::jit::Module& kernelized,
             Contest contest, const Send& send, const SharedNumber& running_now) {
    const torch::NoGradGuard no_grad;
    if (given.threads) {
        at::set_num_threads(*given.threads);
    }
    const VerificationContext context = in_place(given);
    std::vector<Entry> entries =
        enter_models(context, in_place(kernelized, context), contest, send);
    try {
        if (contest == Contest::all) {
            compare_results(context, entries, send);
        }
    } catch (const std::exception& error) {
        send(base::json_line({{"fatal", first_line(error)}}));
        return;
    }
    take_turns(context, entries, send, running_now);
    Json list = Json::array();
    for (const Entry& entry : entries) {
        list.push_back(to_json(entry.said));
    }
    send(base::json_line({{"contestants", list},
                          {"threads", at::get_num_threads()},
                          {"capability", at::get_cpu_capability()}}));
}

}  // namespace

const Contestant& ModelTimes::named(const std::string& name) const {
    return *std::find_if(contestants.begin(), contestants.end(),
                         [&](const Contestant& one) { return one.name == name; });
}

ModelTimes measure_models(const VerificationContext& context, const torch::jit::Module& kernelized,
                          Contest contest,
                          const std::function<void(const std::string&)>& observer) {
    ModelTimes times;
    std::string doing;
    std::optional<std::string> fatal;
    const SharedNumber running_now(-1);
    const SandboxOutcome outcome = run_in_sandbox(
        context.limits,
        [&](const Send& send) { measure(context, kernelized, contest, send, running_now); },
        [&](std::string_view line) {
            const Json json = base::parse_json(line, "measurement");
            if (json.contains("fatal")) {
                fatal = json["fatal"].get<std::string>();
            } else if (json.contains("doing")) {
                doing = base::printable(json["doing"].get<std::string>());
                observer(doing);
            } else if (json.contains("contestants")) {
                for (const Json& one : json["contestants"]) {
                    times.contestants.push_back(contestant_of(one));
                }
                times.threads = json.at("threads").get<int>();
                times.cpu_capability = base::printable(json.at("capability").get<std::string>());
            }
        });
    if (fatal) {
        inputs_do_not_fit(context, *fatal);
    }
    // The child's answer is used only if it has the right shape.
    const auto names = names_of(contest);
    const bool complete =
        std::equal(times.contestants.begin(), times.contestants.end(), names.begin(), names.end(),
                   [](const Contestant& one, const std::string& name) { return one.name == name; });
    if (!outcome.finished || !complete) {
        const int running = running_now.value();
        if (doing.empty() && running >= 0 && running < static_cast<int>(names.size())) {
            doing = names[static_cast<std::size_t>(running)];  // in one of its turns
        }
        throw Error(ErrorCode::refused,
                    {.what = doing.empty() ? "a model cannot be measured"
                                           : "the " + doing + " model cannot be measured",
                     .where = base::display_path(context.original),
                     .why = outcome.finished ? "its times are incomplete" : outcome.why,
                     .hint = "narrow it down with --only or --exclude"});
    }
    return times;
}

}  // namespace twinkle::runtime
