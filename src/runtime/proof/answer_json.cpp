#include "runtime/proof/answer_json.h"

#include "base/text.h"

#include <algorithm>
#include <optional>

namespace twinkle::runtime {

namespace {

using base::Json;

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

bool fits(const Answer::Bound& bound, const tl::expected<Region, std::string>& region,
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

}  // namespace

Json to_json(const Answer& answer) {
    Json calls = Json::array();
    for (const auto& call : answer.calls) {
        Json& candidates = calls.emplace_back(Json::array());
        for (const Answer::Bound& bound : call) {
            candidates.push_back(bound ? to_json(*bound) : Json(bound.error()));
        }
    }
    return {{"split", answer.split}, {"calls", calls}};
}

Answer answer_from_json(const Json& json) {
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

}  // namespace twinkle::runtime
