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
using Bound = Answer::Bound;
using Dead = std::map<std::size_t, std::string>;  // by candidate
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

    // `dead`: candidates that are not to be tried, with the reason. `begin` is called before
    // another one is.
    Answer answer(const Question& question, const Dead& dead,
                  const std::function<void(std::size_t candidate)>& begin) {
        std::vector<std::optional<Way>> ways(question.candidates.size());
        std::optional<std::size_t> split;
        for (std::size_t i = 0; i < ways.size() && !split; ++i) {
            if (!dead.contains(i)) {
                begin(i);
                ways[i] = best_way(question, *question.candidates[i]);
                split = ways[i]->left == 0 ? std::optional(ways[i]->split) : std::nullopt;
            }
        }
        const auto first =
            std::find_if(ways.begin(), ways.end(), [](const auto& way) { return way.has_value(); });
        Answer answer{split.value_or(first != ways.end() ? (*first)->split : 0), {}};
        answer.calls.resize(question.splits[answer.split].size());
        for (std::size_t i = 0; i < ways.size(); ++i) {
            std::vector<Bound> calls;
            if (const auto died = dead.find(i); died != dead.end()) {
                calls.assign(answer.calls.size(), tl::make_unexpected(died->second));
            } else if (ways[i] && ways[i]->split == answer.split) {
                calls = std::move(ways[i]->calls);
            } else {
                begin(i);
                calls = way_of(question, answer.split, *question.candidates[i]).calls;
            }
            for (std::size_t call = 0; call < calls.size(); ++call) {
                answer.calls[call].push_back(std::move(calls[call]));
            }
        }
        return answer;
    }

private:
    // One candidate in one split.
    struct Way {
        std::size_t split = 0;
        std::vector<Bound> calls{};
        std::size_t left = 0;  // results that the original nodes go on computing
        std::size_t unusual = 0;
        std::size_t leaks = 0;

        // A call that cannot be replaced leaves all of its results. Of several splits that leave as
        // many, the one of most calls wins, because one big call would say nothing of those inside.
        // If none leaves any, the one with the fewest guesses.
        auto rank() const {
            const std::size_t fewer = SIZE_MAX - calls.size();
            return std::array{left, left > 0 ? fewer : 0, unusual, leaks, fewer};
        }
    };

    Way way_of(const Question& question, std::size_t split, const Substitutes& substitutes) {
        Way way{split};
        for (const auto& region : question.splits[split]) {
            way.calls.push_back(bind(region, substitutes));
            const Bound& binding = way.calls.back();
            way.left += left_by(region, binding);
            way.unusual += binding ? binding->unusual : 0;
            way.leaks += binding ? region->leaks.size() : 0;
        }
        return way;
    }

    Way best_way(const Question& question, const Substitutes& substitutes) {
        std::optional<Way> best;
        for (std::size_t i = 0; i < question.splits.size(); ++i) {
            Way way = way_of(question, i, substitutes);
            const bool perfect = way.left + way.unusual + way.leaks == 0;
            if (!best || way.rank() < best->rank()) {
                best = std::move(way);
            }
            if (perfect) {
                break;
            }
        }
        return *std::move(best);
    }

    static std::size_t left_by(const tl::expected<Region, std::string>& region,
                               const Bound& binding) {
        if (!region) {
            return pieces_of_no_region;
        }
        return !binding ? region->results.size()
                        : static_cast<std::size_t>(std::count(
                              binding->results.begin(), binding->results.end(), std::nullopt));
    }

    Bound bind(const tl::expected<Region, std::string>& region, const Substitutes& substitutes) {
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
        Json& candidates = calls.emplace_back(Json::array());
        for (const Bound& bound : call) {
            candidates.push_back(bound ? to_json(*bound) : Json(bound.error()));
        }
    }
    return {{"split", answer.split}, {"calls", calls}};
}

Answer answer_from(const Json& json) {
    Answer answer{json.at("split").get<std::size_t>(), {}};
    for (const Json& call : json.at("calls")) {
        auto& candidates = answer.calls.emplace_back();
        for (const Json& bound : call) {
            if (bound.is_string()) {
                candidates.emplace_back(
                    tl::make_unexpected(base::printable(bound.get<std::string>())));
            } else {
                candidates.emplace_back(binding_from(bound));
            }
        }
    }
    return answer;
}

bool fits(const Bound& bound, const tl::expected<Region, std::string>& region,
          const Substitutes& substitutes) {
    if (!bound) {
        return true;
    }
    const bool kinds = std::all_of(bound->sources.begin(), bound->sources.end(),
                                   [](const ParameterSource& source) {
                                       return source.kind >= ParameterSource::Kind::omitted &&
                                              source.kind <= ParameterSource::Kind::scalar;
                                   });
    return kinds && region && bound->substitute < substitutes.size() &&
           bound->results.size() == region->results.size() &&
           (!bound->out || bound->out->argument < region->inputs.size());
}

// Checks that a child's answer fits this question: its numbers are used as indices.
bool fits(const Answer& answer, const Question& question) {
    if (answer.split >= question.splits.size() ||
        answer.calls.size() != question.splits[answer.split].size()) {
        return false;
    }
    for (std::size_t i = 0; i < answer.calls.size(); ++i) {
        const auto& candidates = answer.calls[i];
        if (candidates.size() != question.candidates.size()) {
            return false;
        }
        for (std::size_t one = 0; one < candidates.size(); ++one) {
            if (!fits(candidates[one], question.splits[answer.split][i],
                      *question.candidates[one])) {
                return false;
            }
        }
    }
    return true;
}

// A child's answers to the open questions, and the question and candidate during which it died.
struct Collector {
    const std::vector<Question>& questions;
    std::map<std::size_t, Answer> answers{};
    std::optional<std::pair<std::size_t, std::size_t>> current{};
    std::optional<std::string> fatal{};

    [[noreturn]] static void unfit() {
        throw Error(
            ErrorCode::malformed,
            {.what = "a proof does not fit its question", .where = "", .why = "", .hint = ""});
    }

    // Checks every line: foreign code can write to the child's pipe.
    void take(std::string_view line) {
        const Json json = base::parse_json(line, "proof");
        if (json.contains("fatal")) {
            fatal = base::printable(json["fatal"].get<std::string>());
        } else if (json.contains("begin")) {
            const auto number = json["begin"].get<std::size_t>();
            const auto candidate = json.at("candidate").get<std::size_t>();
            if (number >= questions.size() || candidate >= questions[number].candidates.size()) {
                unfit();
            }
            current.emplace(number, candidate);
        } else if (current) {
            Answer answer = answer_from(json);
            if (!fits(answer, questions[current->first])) {
                unfit();
            }
            answers.insert_or_assign(current->first, std::move(answer));
            current.reset();
        }
    }
};

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
        answers.push_back(prover->answer(question, {}, [](std::size_t) {}));
    }
    return answers;
}

std::vector<Answer> prove_calls_in_child(const std::vector<Question>& questions,
                                         const std::function<void()>& run,
                                         const SandboxLimits& limits,
                                         const std::optional<at::Device>& device) {
    std::map<std::size_t, Answer> answers;
    std::map<std::size_t, Dead> dead;  // by question
    while (answers.size() < questions.size()) {
        Collector collector{questions};
        const auto work = [&](const Send& send) {
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
                const auto begin = [&](std::size_t candidate) {
                    send(base::json_line({{"begin", i}, {"candidate", candidate}}));
                };
                begin(0);
                send(base::json_line(to_json(prover->answer(questions[i], dead[i], begin))));
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
        bool any = false;
        if (!outcome.finished) {
            const auto [question, candidate] = *collector.current;
            any = dead[question].emplace(candidate, outcome.why).second;
        }
        const std::size_t before = answers.size();
        answers.merge(collector.answers);
        if (!any && answers.size() == before) {  // it is not our code that ended it
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
