#include "runtime/proof/call_prover.h"

#include "base/json.h"
#include "base/text.h"
#include "runtime/proof/binding_search.h"
#include "runtime/trial/gpu_state.h"
#include "runtime/verify/call_recorder.h"
#include "runtime/verify/run_error.h"
#include "twinkle/error.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace twinkle::runtime {

namespace {

using base::Json;
constexpr std::size_t calls_per_region = 4;
// A piece that cannot be cut out is most often half a call: worse than a call with a result or two
// too few.
constexpr std::size_t pieces_of_no_region = 3;

[[noreturn]] void inputs_do_not_fit(const std::string& why) {
    throw Error(ErrorCode::malformed,
                {.what = "the model cannot be run on these inputs",
                 .where = "",
                 .why = why,
                 .hint = "give inputs as the model's forward takes them (--inputs)"});
}

class Prover {
public:
    Prover(const std::vector<Question>& questions, const std::function<void()>& run)
        : questions_(questions) {
        std::vector<Region> regions;
        for (const Question& question : questions_) {
            for (const auto& split : question.splits) {
                for (const auto& region : split) {
                    if (region) {
                        numbers_.emplace(&*region, regions.size());
                        regions.push_back(*region);
                    }
                }
            }
        }
        recorded_ = record_regions(regions, calls_per_region, run);
    }

    // The split that leaves the fewest results to the original nodes; a call that cannot be
    // replaced leaves all of its results. Of several such splits the one of most calls wins,
    // because one big call would say nothing of those inside. If none leaves any, the one with the
    // fewest guesses.
    Answer answer(const Question& question) {
        std::optional<Answer> best;
        std::array<std::size_t, 5> least{};
        for (std::size_t i = 0; i < question.splits.size(); ++i) {
            Answer one{i, {}};
            std::size_t left = 0;
            std::size_t unusual = 0;
            std::size_t leaks = 0;
            for (const auto& region : question.splits[i]) {
                one.calls.push_back(bind(region, *question.substitutes));
                const auto& binding = one.calls.back();
                left += left_by(region, binding);
                unusual += binding ? binding->unusual : 0;
                leaks += binding ? region->leaks.size() : 0;
            }
            const std::size_t fewer = SIZE_MAX - one.calls.size();
            const std::array rank{left, left > 0 ? fewer : 0, unusual, leaks, fewer};
            if (!best || rank < least) {
                best = std::move(one);
                least = rank;
            }
            if (left + unusual + leaks == 0) {
                break;
            }
        }
        return *std::move(best);
    }

private:
    static std::size_t left_by(const tl::expected<Region, std::string>& region,
                               const tl::expected<CallBinding, std::string>& binding) {
        if (!region) {
            return pieces_of_no_region;
        }
        return !binding ? region->results.size()
                        : static_cast<std::size_t>(std::count(
                              binding->results.begin(), binding->results.end(), std::nullopt));
    }

    tl::expected<CallBinding, std::string> bind(const tl::expected<Region, std::string>& region,
                                                const Substitutes& substitutes) {
        if (!region) {
            return tl::make_unexpected("it cannot be cut out: " + region.error());
        }
        const auto& recorded = recorded_.at(numbers_.at(&*region));
        if (recorded.empty()) {
            return tl::make_unexpected("these inputs do not reach it");
        }
        return search_.find(*region, substitutes, recorded);
    }

    const std::vector<Question>& questions_;
    std::map<const Region*, std::size_t> numbers_;
    std::vector<std::vector<std::vector<c10::IValue>>> recorded_;
    BindingSearch search_;
};

Json to_json(const CallBinding& binding) {
    Json sources = Json::array();
    for (const ParameterSource& source : binding.sources) {
        sources.push_back({static_cast<int>(source.kind), source.index});
    }
    Json results = Json::array();
    for (const auto& result : binding.results) {
        results.push_back(result ? Json(*result) : Json());
    }
    return {{"substitute", binding.substitute},
            {"sources", sources},
            {"out", binding.out ? Json{binding.out->argument, binding.out->halved} : Json()},
            {"unusual", binding.unusual},
            {"results", results}};
}

CallBinding binding_from(const Json& json) {
    CallBinding binding;
    binding.substitute = json.at("substitute").get<std::size_t>();
    binding.unusual = json.at("unusual").get<std::size_t>();
    for (const Json& source : json.at("sources")) {
        binding.sources.push_back({static_cast<ParameterSource::Kind>(source.at(0).get<int>()),
                                   source.at(1).get<std::size_t>()});
    }
    if (const Json& out = json.at("out"); !out.is_null()) {
        binding.out = ResultLike{out.at(0).get<std::size_t>(), out.at(1).get<bool>()};
    }
    for (const Json& result : json.at("results")) {
        binding.results.push_back(result.is_null() ? std::nullopt
                                                   : std::optional(result.get<std::size_t>()));
    }
    return binding;
}

Json to_json(const Answer& answer) {
    Json calls = Json::array();
    for (const auto& call : answer.calls) {
        calls.push_back(call ? to_json(*call) : Json(call.error()));
    }
    return {{"split", answer.split}, {"calls", calls}};
}

Answer answer_from(const Json& json) {
    Answer answer{json.at("split").get<std::size_t>(), {}};
    for (const Json& call : json.at("calls")) {
        if (call.is_string()) {
            answer.calls.emplace_back(
                tl::make_unexpected(base::printable(call.get<std::string>())));
        } else {
            answer.calls.emplace_back(binding_from(call));
        }
    }
    return answer;
}

// Checks that a child's answer fits this question: its numbers are used as indices.
bool fits(const Answer& answer, const Question& question) {
    if (answer.split >= question.splits.size() ||
        answer.calls.size() != question.splits[answer.split].size()) {
        return false;
    }
    for (std::size_t i = 0; i < answer.calls.size(); ++i) {
        const auto& call = answer.calls[i];
        const auto& region = question.splits[answer.split][i];
        if (!call) {
            continue;
        }
        const bool kinds = std::all_of(call->sources.begin(), call->sources.end(),
                                       [](const ParameterSource& source) {
                                           return source.kind >= ParameterSource::Kind::omitted &&
                                                  source.kind <= ParameterSource::Kind::scalar;
                                       });
        if (!kinds || !region || call->substitute >= question.substitutes->size() ||
            call->results.size() != region->results.size() ||
            (call->out && call->out->argument >= region->inputs.size())) {
            return false;
        }
    }
    return true;
}

// A child's answers to the open questions, and the question during which it died.
struct Collector {
    const std::vector<Question>& questions;
    std::map<std::size_t, Answer> answers{};
    std::optional<std::size_t> current{};
    std::optional<std::string> fatal{};

    // Checks every line: foreign code can write to the child's pipe.
    void take(std::string_view line) {
        const Json json = base::parse_json(line, "proof");
        if (json.contains("fatal")) {
            fatal = base::printable(json["fatal"].get<std::string>());
        } else if (json.contains("begin")) {
            const auto number = json["begin"].get<std::size_t>();
            static_cast<void>(questions.at(number));
            current = number;
        } else if (current) {
            Answer answer = answer_from(json);
            if (!fits(answer, questions[*current])) {
                throw Error(ErrorCode::malformed, {.what = "a proof does not fit its question",
                                                   .where = "",
                                                   .why = "",
                                                   .hint = ""});
            }
            answers.insert_or_assign(*current, std::move(answer));
            current.reset();
        }
    }
};

Answer refused(const Question& question, const std::string& why) {
    Answer answer;
    answer.calls.assign(question.splits.at(0).size(), tl::make_unexpected(why));
    return answer;
}

}  // namespace

std::vector<Answer> prove_calls(const std::vector<Question>& questions,
                                const std::function<void()>& run) {
    std::optional<Prover> prover;
    try {
        prover.emplace(questions, run);
    } catch (const std::exception& error) {
        inputs_do_not_fit(run_error(error.what()));
    }
    std::vector<Answer> answers;
    for (const Question& question : questions) {
        answers.push_back(prover->answer(question));
    }
    return answers;
}

std::vector<Answer> prove_calls_in_child(const std::vector<Question>& questions,
                                         const std::function<void()>& run,
                                         const SandboxLimits& limits,
                                         const std::optional<at::Device>& device) {
    std::map<std::size_t, Answer> answers;
    while (answers.size() < questions.size()) {
        Collector collector{questions};
        const auto work = [&](const std::function<void(std::string_view)>& send) {
            std::optional<Prover> prover;
            try {
                prover.emplace(questions, run);
            } catch (const std::exception& error) {
                send(base::json_line({{"fatal", run_error(error.what())}}));
                return;
            }
            for (std::size_t i = 0; i < questions.size(); ++i) {
                if (answers.contains(i)) {
                    continue;
                }
                send(base::json_line({{"begin", i}}));
                send(base::json_line(to_json(prover->answer(questions[i]))));
                if (!still_works(device)) {
                    return;  // the others are for another child
                }
            }
        };
        const SandboxOutcome outcome =
            run_in_sandbox(limits, work, [&](std::string_view line) { collector.take(line); });
        if (collector.fatal || (!outcome.finished && !collector.current)) {
            inputs_do_not_fit(collector.fatal.value_or(outcome.why));
        }
        if (!outcome.finished) {
            answers.emplace(*collector.current,
                            refused(questions[*collector.current], outcome.why));
        }
        const std::size_t before = answers.size();
        answers.merge(collector.answers);
        if (outcome.finished && answers.size() == before) {  // it is not our code that ended it
            inputs_do_not_fit("the child process that ran the model ended without an answer");
        }
    }
    std::vector<Answer> all;
    for (auto& [number, answer] : answers) {
        all.push_back(std::move(answer));
    }
    return all;
}

}  // namespace twinkle::runtime
