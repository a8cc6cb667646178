#include "runtime/verify/verification.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "runtime/graph/sites.h"
#include "runtime/trial/gpu_state.h"
#include "runtime/verify/call_recorder.h"
#include "runtime/verify/contestant.h"
#include "runtime/verify/double_reference.h"
#include "runtime/verify/judgement.h"
#include "runtime/verify/originals.h"
#include "runtime/verify/perturbed_originals.h"
#include "runtime/verify/rounded_results.h"
#include "runtime/verify/run_error.h"
#include "runtime/verify/side_by_side.h"
#include "runtime/verify/site_module.h"
#include "runtime/verify/sized_calls.h"
#include "twinkle/error.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>

namespace twinkle::runtime {

namespace {

using base::Json;
using Send = std::function<void(std::string_view)>;

Json to_json(const Verdict& verdict) {
    Json by_size = Json::array();
    for (const SizeVerdict& one : verdict.by_size) {
        by_size.push_back(
            {{"compared", one.compared}, {"problem", one.problem}, {"times", one.times}});
    }
    return {{"right", verdict.right},
            {"because", verdict.because},
            {"reached", verdict.reached},
            {"ran", verdict.ran},
            // JSON has no infinity.
            {"error", std::min(verdict.comparison.error, 1e300)},
            {"original", std::min(verdict.comparison.original_error, 1e300)},
            {"allowed", std::min(verdict.comparison.allowed, 1e300)},
            {"agreement", verdict.comparison.agreement},
            {"calls", verdict.calls},
            {"times", verdict.times},
            {"by_size", by_size}};
}

Verdict from_json(const Json& json) {
    Verdict verdict;
    verdict.right = json.at("right").get<bool>();
    verdict.because = base::printable(json.at("because").get<std::string>());
    verdict.reached = json.at("reached").get<bool>();
    verdict.ran = json.at("ran").get<bool>();
    verdict.comparison.error = json.at("error").get<double>();
    verdict.comparison.original_error = json.at("original").get<double>();
    verdict.comparison.allowed = json.at("allowed").get<double>();
    verdict.comparison.agreement = json.at("agreement").get<double>();
    verdict.calls = json.at("calls").get<std::size_t>();
    verdict.times = json.at("times").get<Samples>();
    for (const Json& one : json.at("by_size")) {
        verdict.by_size.push_back({one.at("compared").get<bool>(),
                                   base::printable(one.at("problem").get<std::string>()),
                                   one.at("times").get<Samples>()});
    }
    return verdict;
}

void limit_threads(const VerificationContext& context) {
    if (context.threads) {
        at::set_num_threads(*context.threads);
    }
}

// Whether there is time left, counted from the first time that it is asked.
std::function<bool()> stopwatch(std::optional<std::chrono::duration<double>> limit) {
    using Clock = std::chrono::steady_clock;
    const auto begun = std::make_shared<std::optional<Clock::time_point>>();
    return [limit, begun] {
        const bool first = !*begun;
        *begun = begun->value_or(Clock::now());
        return first || !limit || Clock::now() - **begun < *limit;
    };
}

std::function<void(const std::string&)> sender_of_sizes(const Send& send) {
    return [&send](const std::string& size) { send(base::json_line({{"size", size}})); };
}

// A result that is as far from the reference as zero is has nothing in common with it.
constexpr double most_of_coarser = 1;

const std::string& site_called(const VerificationContext& context, const std::string& name) {
    const auto other = context.others.find(name);
    return other == context.others.end() ? name : other->second.site;
}

// Of what is judged: the sites, each once.
std::vector<std::string> sites_of(const VerificationContext& context,
                                  const std::vector<std::string>& names) {
    std::vector<std::string> sites;
    for (const std::string& name : names) {
        const std::string& site = site_called(context, name);
        if (std::find(sites.begin(), sites.end(), site) == sites.end()) {
            sites.push_back(site);
        }
    }
    return sites;
}

// What the sites are compared with: the original in double precision. Where nothing is compared,
// any model stands for it.
class Reference {
public:
    Reference(const VerificationContext& context, const std::vector<std::string>& sites,
              const torch::jit::Module& kernelized, const torch::jit::Module& original)
        : compares_(context.compares),
          model_(compares_ ? open_reference(context, sites) : original) {
        if (compares_) {
            rewrite(inlined_sites(kernelized, model_, sites));
        }
    }

    torch::jit::Module of(const std::string& site) const {
        if (!compares_) {
            return model_;
        }
        const auto inlined = inlined_.find(site);
        return in_double(inlined != inlined_.end() ? inlined->second : site_of(model_, {}, site));
    }

private:
    // To double precision. Inlined sites are cut out first: rewriting puts other nodes in the place
    // of some that their regions name.
    void rewrite(const InlinedSites& sites) {
        std::vector<torch::jit::Module> all{model_};
        for (const auto& one : sites) {
            all.push_back(site_of(model_, sites, one.first));
            inlined_.emplace(one.first, all.back());
        }
        compute_in_double(all);
    }

    bool compares_;
    torch::jit::Module model_;
    std::map<std::string, torch::jit::Module> inlined_;
};

// Runs in the child. Sends {"fatal"}, or {"trying"} and {"sizes"} (sized_calls.h) and, for sites
// until one breaks the GPU, {"begin"}, {"size"} and {"verdict"}; then times (side_by_side.h).
void judge_sites(const VerificationContext& given, const torch::jit::Module& made,
                 const std::vector<std::string>& names, const Send& send) {
    const torch::NoGradGuard no_grad;
    limit_threads(given);
    const VerificationContext context = in_place(given);
    const std::vector<std::string> sites = sites_of(context, names);
    const torch::jit::Module kernelized = in_place(made, context);
    const torch::jit::Module recorded_model = open_original(context, sites);
    CallRecorder recorder(recorded_model, sites, inlined_sites(kernelized, recorded_model, sites));
    const auto recordings = record_calls(recorder, context, send);
    if (!recordings) {
        return;
    }
    const torch::jit::Module original = open_original(context, sites);
    const InlinedSites inlined = inlined_sites(kernelized, original, sites);
    const Reference reference(context, sites, kernelized, original);
    SideBySide times(context, recorder.weights(), send);
    for (const std::string& name : names) {
        send(base::json_line({{"begin", name}}));
        const auto other = context.others.find(name);
        const std::string& site = site_called(context, name);
        const auto replaced = other == context.others.end()
                                  ? module_at(kernelized, site)
                                  : std::optional(in_place(other->second.module, context));
        // A site without a module lies in what another site has replaced.
        const auto calls = replaced ? calls_of(site, *recordings) : std::vector<SizedCalls>(1);
        const bool coarser = context.coarser.contains(site);
        const Contest contest{replaced.value_or(kernelized),
                              site_of(original, inlined, site),
                              reference.of(site),
                              coarser ? Norm::euclidean : Norm::largest,
                              sign_of_life(send),
                              sender_of_sizes(send),
                              context,
                              std::nullopt,
                              coarser ? std::optional(most_of_coarser) : std::nullopt,
                              std::nullopt,
                              recorder.weights()};
        const auto sizes = context.by_size.find(name);
        const JudgedSizes judged = sizes != context.by_size.end()
                                       ? judge_by_size(contest, calls, sizes->second)
                                       : JudgedSizes{judge(contest, calls), {}};
        send(base::json_line({{"verdict", to_json(judged.verdict)}}));
        if (!judged.verdict.right && !still_works(context.device)) {
            return;  // the other sites are for another child
        }
        times.add(name, contest.original, contest.kernelized, judged.timed);
    }
    times.measure(stopwatch(context.measuring));
}

void judge_whole(const VerificationContext& given, const torch::jit::Module& made,
                 const Send& send) {
    const torch::NoGradGuard no_grad;
    limit_threads(given);
    const VerificationContext context = in_place(given);
    // Frozen where it is saved from, and moved then, as who loads it does.
    const torch::jit::Module kernelized =
        in_place(context.frozen ? frozen_for(made, context) : made, context);
    const torch::jit::Module original = open_original(context);
    const torch::jit::Module reference = open_exact(context);
    const auto measure = context.dtype ? std::optional(open_rounded(context)) : std::nullopt;
    std::vector<SizedCalls> calls = {{"", true, {{"forward", context.inputs}}}};
    for (const SizeVariant& variant : context.sizes) {
        const Inputs inputs = variant.of(context.inputs);
        calls.push_back({size_text(variant, inputs), variant.tuned, {{"forward", inputs}}});
    }
    send(base::json_line({{"begin", ""}}));
    send(base::json_line(
        {{"verdict", to_json(judge({kernelized, original, reference, Norm::euclidean,
                                    sign_of_life(send), sender_of_sizes(send), context, measure,
                                    context.max_error, context.agreement},
                                   calls))}}));
}

Verdict judge_converted(const VerificationContext& given) {
    Verdict verdict;
    verdict.calls = 1;
    try {
        const VerificationContext context = in_place(given);
        const torch::jit::Module converted = open_original(context);
        torch::jit::Module reference = open_exact(context);
        const c10::IValue result = run_seeded(converted, "forward", deep_copy(context.inputs));
        verdict.ran = true;
        const Yardstick rounded =
            rounded_yardstick(open_rounded(context), "forward", context.inputs, result);
        const c10::IValue exact =
            run_seeded(reference, "forward", with_dtype(context.inputs, at::kDouble));
        verdict.comparison = compare_beyond_luck(result, rounded, exact, Norm::euclidean, {});
        verdict.because = verdict.comparison.problem;
    } catch (const std::exception& error) {
        verdict.because = cannot_be_run(error.what());
    }
    verdict.right = verdict.because.empty();
    return verdict;
}

// Collects what a child sends; remembers which site was being judged when it died.
struct Collector {
    std::map<std::string, Verdict> verdicts;
    std::optional<std::string> current;
    std::string size;  // in which it is being run
    SizesTried sizes;
    std::vector<std::string> timing;  // sites that were being measured together
    std::set<std::string> timed;      // of which nothing more was to be measured

    void take(std::string_view line) {
        const Json json = base::parse_json(line, "verification");
        if (sizes.take(json)) {
            return;
        }
        if (json.contains("begin")) {
            current = json["begin"].get<std::string>();
            size.clear();
        } else if (json.contains("size")) {
            size = base::printable(json["size"].get<std::string>());
        } else if (json.contains("timing")) {
            timing = json["timing"].get<std::vector<std::string>>();
        } else if (json.contains("times")) {
            take_times(json);
        } else if (json.contains("timed")) {
            timed.insert(json["timed"].get<std::string>());
        } else if (json.contains("verdict") && current) {
            verdicts[*current] = from_json(json["verdict"]);
            current.reset();
        }
    }

    void take_times(const Json& json) {
        const auto site = verdicts.find(json.at("site").get<std::string>());
        const auto group = json.at("group").get<std::size_t>();
        if (site != verdicts.end() && group < site->second.by_size.size()) {
            SizeVerdict& here = site->second.by_size[group];
            here.times = json["times"].get<Samples>();
            here.problem = base::printable(json.at("problem").get<std::string>());
        }
    }
};

// Drops verdicts of sites that were right but not measured, because the child ended first. These
// sites are judged again.
void drop_unmeasured(Collector& collector, const VerificationContext& context) {
    std::erase_if(collector.verdicts, [&](const auto& one) {
        return one.second.right && context.by_size.contains(one.first) &&
               !collector.timed.contains(one.first);
    });
}

bool has_wrong(const Collector& collector) {
    return std::any_of(collector.verdicts.begin(), collector.verdicts.end(),
                       [](const auto& one) { return !one.second.right; });
}

// A child has died. Of a site that was being run that is the verdict. Of several that were being
// measured together one is to blame: each is tried again, alone. Whether any is.
bool blame(Collector& collector, VerificationContext& context, const std::string& why) {
    drop_unmeasured(collector, context);
    if (collector.current) {
        collector.verdicts[*collector.current] = {};
        collector.verdicts[*collector.current].because = at_size(collector.size) + why;
        return false;
    }
    if (collector.timing.size() == 1) {
        collector.verdicts[collector.timing.front()].because = why;
        return false;
    }
    const std::size_t before = context.apart.size();
    context.apart.insert(collector.timing.begin(), collector.timing.end());
    return context.apart.size() > before;
}

// For a child that has died, or that foreign code has ended as if its work were done.
Verdict without_verdict(const SandboxOutcome& outcome, const std::string& where) {
    Verdict verdict;
    verdict.because = where + (outcome.finished ? "it ended without a verdict" : outcome.why);
    return verdict;
}

}  // namespace

std::function<void()> sign_of_life(const Send& send) {
    using Clock = std::chrono::steady_clock;
    return [&send, last = Clock::time_point{}]() mutable {
        if (const auto now = Clock::now(); now - last > std::chrono::milliseconds(100)) {
            last = now;
            send(base::json_line({{"alive", true}}));
        }
    };
}

void inputs_do_not_fit(const VerificationContext& context, const std::string& why) {
    throw Error(ErrorCode::malformed,
                {.what = "the original model cannot be run on these inputs",
                 .where = base::display_path(context.original),
                 .why = why,
                 .hint = "give inputs as the model's forward takes them (--inputs)"});
}

SitesVerified verify_sites(const VerificationContext& given, const torch::jit::Module& kernelized,
                           const std::vector<std::string>& sites) {
    VerificationContext context = given;
    std::map<std::string, Verdict> verdicts;
    std::vector<std::string> pending = sites;
    while (!pending.empty()) {
        Collector collector;
        const SandboxOutcome outcome = run_in_sandbox(
            context.limits,
            [&](const Send& send) { judge_sites(context, kernelized, pending, send); },
            [&](std::string_view line) {
                collector.take(line);
                if (collector.current && context.observer) {
                    context.observer(verdicts.size() + collector.verdicts.size(), sites.size(),
                                     *collector.current);
                }
            });
        if (collector.sizes.drop_crashed(context.sizes)) {
            continue;
        }
        if (collector.sizes.fatal ||
            (!outcome.finished && !collector.current && collector.timing.empty())) {
            inputs_do_not_fit(context, collector.sizes.fatal.value_or(outcome.why));
        }
        const bool again = !outcome.finished && blame(collector, context, outcome.why);
        const bool cut_short = std::any_of(pending.begin(), pending.end(), [&](const auto& name) {
            return !collector.verdicts.contains(name);
        });
        if (outcome.finished && cut_short && has_wrong(collector)) {  // that broke the GPU
            drop_unmeasured(collector, context);
        }
        context.sizes = sizes_chosen(context.sizes, collector.sizes.accepted);
        std::erase_if(
            collector.verdicts, [&](const auto& one) {  // drops sites that were not pending
                return std::find(pending.begin(), pending.end(), one.first) == pending.end();
            });
        // Foreign code may have ended the child as if it were ours.
        if (collector.verdicts.empty() && !again) {
            inputs_do_not_fit(context, "the child process that ran it ended without a verdict");
        }
        std::erase_if(pending,
                      [&](const std::string& site) { return collector.verdicts.contains(site); });
        verdicts.merge(collector.verdicts);
    }
    return {std::move(verdicts), std::move(context.sizes)};
}

Verdict verify_whole(const VerificationContext& context, const torch::jit::Module& kernelized) {
    Collector collector;
    const SandboxOutcome outcome = run_in_sandbox(
        context.limits, [&](const Send& send) { judge_whole(context, kernelized, send); },
        [&](std::string_view line) { collector.take(line); });
    if (collector.verdicts.contains("")) {
        return collector.verdicts[""];
    }
    return without_verdict(outcome, at_size(collector.size));
}

Verdict verify_conversion(const VerificationContext& context) {
    Collector collector;
    const SandboxOutcome outcome = run_in_sandbox(
        context.limits,
        [&](const Send& send) {
            const torch::NoGradGuard no_grad;
            limit_threads(context);
            send(base::json_line({{"begin", ""}}));
            send(base::json_line({{"verdict", to_json(judge_converted(context))}}));
        },
        [&](std::string_view line) { collector.take(line); });
    if (collector.verdicts.contains("")) {
        return collector.verdicts[""];
    }
    return without_verdict(outcome, "");
}

void enter(const Verdict& verdict, SiteReport& site) {
    if (!verdict.reached) {
        site.because += "; not reached by these inputs, so not verified";
        return;
    }
    if (verdict.comparison.allowed > 0) {
        site.max_error = verdict.comparison.error;
        site.original_error = verdict.comparison.original_error;
        if (site.precision.empty()) {  // else the whole model's counts
            site.allowed_error = verdict.comparison.allowed;
        }
        if (verdict.comparison.agreement < 1) {
            site.agreement = verdict.comparison.agreement;
        }
    }
    if (!verdict.right) {
        site.status = SiteStatus::reverted;
        site.because = verdict.because;
        if (!site.candidates.empty()) {
            site.candidates.front().because = verdict.because;
        }
    } else if (!verdict.because.empty()) {
        site.because += (site.because.empty() ? "" : "; ") + verdict.because;
    }
}

}  // namespace twinkle::runtime
