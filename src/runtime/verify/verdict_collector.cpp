#include "runtime/verify/verdict_collector.h"

#include "base/json.h"
#include "base/text.h"

#include <algorithm>

namespace twinkle::runtime {

void VerdictCollector::take(std::string_view line) {
    const base::Json json = base::parse_json(line, "verification");
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
        verdicts[*current] = verdict_from_json(json["verdict"]);
        current.reset();
    }
}

void VerdictCollector::take_times(const base::Json& json) {
    const auto site = verdicts.find(json.at("site").get<std::string>());
    const auto group = json.at("group").get<std::size_t>();
    if (site != verdicts.end() && group < site->second.by_size.size()) {
        SizeVerdict& here = site->second.by_size[group];
        here.times = json["times"].get<Samples>();
        here.problem = base::printable(json.at("problem").get<std::string>());
    }
}

void VerdictCollector::drop_unmeasured(const VerificationContext& context) {
    std::erase_if(verdicts, [&](const auto& one) {
        return one.second.right && context.by_size.contains(one.first) &&
               !timed.contains(one.first);
    });
}

bool VerdictCollector::has_wrong() const {
    return std::any_of(verdicts.begin(), verdicts.end(),
                       [](const auto& one) { return !one.second.right; });
}

bool VerdictCollector::blame(VerificationContext& context, const std::string& why) {
    drop_unmeasured(context);
    if (current) {
        verdicts[*current] = {};
        verdicts[*current].because = at_size(size) + why;
        return false;
    }
    if (timing.size() == 1) {
        verdicts[timing.front()].because = why;
        return false;
    }
    const std::size_t before = context.apart.size();
    context.apart.insert(timing.begin(), timing.end());
    return context.apart.size() > before;
}

}  // namespace twinkle::runtime
