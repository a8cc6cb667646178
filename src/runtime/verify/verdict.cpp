#include "runtime/verify/verdict.h"

#include "base/text.h"

#include <algorithm>

namespace twinkle::runtime {

base::Json to_json(const Verdict& verdict) {
    base::Json by_size = base::Json::array();
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

Verdict verdict_from_json(const base::Json& json) {
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
    for (const base::Json& one : json.at("by_size")) {
        verdict.by_size.push_back({one.at("compared").get<bool>(),
                                   base::printable(one.at("problem").get<std::string>()),
                                   one.at("times").get<Samples>()});
    }
    return verdict;
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
