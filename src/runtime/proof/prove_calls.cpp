#include "runtime/proof/prove_calls.h"

#include "base/json.h"
#include "base/text.h"
#include "runtime/proof/answer_json.h"
#include "runtime/proof/call_prover.h"
#include "runtime/trial/gpu_state.h"
#include "runtime/verify/run_error.h"
#include "twinkle/error.h"

#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace twinkle::runtime {

namespace {

using base::Json;

[[noreturn]] void inputs_do_not_fit(const std::string& why) {
    throw Error(ErrorCode::malformed,
                {.what = "the model cannot be run on these inputs",
                 .where = "",
                 .why = why,
                 .hint = "give inputs as the model's forward takes them (--inputs)"});
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
            Answer answer = answer_from_json(json);
            if (!fits(answer, questions[current->first])) {
                unfit();
            }
            answers.insert_or_assign(current->first, std::move(answer));
            current.reset();
        }
    }
};

// Runs in the child: answers what has no answer, until a candidate breaks the GPU.
void answer_open(const std::vector<Question>& questions, const std::function<void()>& run,
                 const std::map<std::size_t, Answer>& answers,
                 std::map<std::size_t, CallProver::Dead>& dead,
                 const std::optional<at::Device>& device, const Send& send) {
    std::optional<CallProver> prover;
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
}

}  // namespace

std::vector<Answer> prove_calls(const std::vector<Question>& questions,
                                const std::function<void()>& run) {
    std::optional<CallProver> prover;
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
    std::map<std::size_t, CallProver::Dead> dead;  // by question
    while (answers.size() < questions.size()) {
        Collector collector{questions};
        const auto work = [&](const Send& send) {
            answer_open(questions, run, answers, dead, device, send);
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
