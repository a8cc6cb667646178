#include "worker/times_json.h"

namespace twinkle::worker {

using base::Json;
using runtime::Verdict;

namespace {

Json to_json(const runtime::Spread& spread) {
    return {{"median", spread.median},
            {"lower_quartile", spread.lower},
            {"upper_quartile", spread.upper}};
}

}  // namespace

Json times_json(const std::vector<double>& us) {
    return us.empty() ? Json() : to_json(runtime::spread_of(us));
}

Json speedup_json(const std::vector<double>& contestant, const std::vector<double>& other) {
    if (contestant.empty() || other.empty()) {
        return {};
    }
    const auto speedup = runtime::speedup_of(contestant, other);
    Json json = to_json(speedup.ratio);
    json["difference"] = runtime::verdict_name(speedup.verdict);
    return json;
}

void add_times(Json& site, const std::map<std::string, Verdict>& verdicts) {
    const auto found = verdicts.find(site.at("site").get<std::string>());
    const bool measured = found != verdicts.end() && found->second.times.size() == 2;
    const auto samples = measured ? found->second.times : runtime::Samples(2);
    site.update({{"calls", found != verdicts.end() ? found->second.calls : 0},
                 {"runs", samples[0].size()},
                 {"original_us", times_json(samples[0])},
                 {"kernelized_us", times_json(samples[1])},
                 {"speedup", speedup_json(samples[1], samples[0])}});
}

}  // namespace twinkle::worker
