#include "base/text.h"
#include "twinkle/error.h"
#include "twinkle/ops.h"
#include "worker/commands.h"
#include "worker/tune_sites.h"

#include <algorithm>
#include <chrono>

namespace twinkle::worker {

namespace {

using base::Json;

Json operation_json(const Invocation& invocation, const AutotuneOptions& options) {
    Json json = {{"operation", base::printable(invocation.operation)},
                 {"invocation", invocation.key()},
                 {"cfg", nullptr},
                 {"us", nullptr},
                 {"problem", nullptr}};
    try {
        const Measurement measured = ops::tune_recorded(invocation, options);
        const MeasuredCfg& best = measured.candidates.at(measured.best);
        json["cfg"] = best.cfg;
        json["us"] = best.median_us;
    } catch (const Error& error) {
        json["problem"] =
            error.details().what + (error.details().why.empty() ? "" : ": " + error.details().why);
    } catch (const std::exception& error) {
        json["problem"] = base::printable(std::string(error.what()).substr(0, 300));
    }
    return json;
}

}  // namespace

// {"operations": [{"operation", "invocation", "cfg", "us", "problem"}]}
Json tune_operations_command(const Request& request, const Channel& channel) {
    using clock = std::chrono::steady_clock;
    const auto end =
        clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(
                           request.duration.value_or(usual_tuning_seconds)));
    Json operations = Json::array();
    for (std::size_t i = 0; i < request.invocations.size(); ++i) {
        const Invocation invocation = Invocation::from_key(request.invocations[i]);
        channel.progress(i, request.invocations.size(), invocation.operation);
        const double left = std::chrono::duration<double, std::milli>(end - clock::now()).count() /
                            static_cast<double>(request.invocations.size() - i);
        AutotuneOptions options{.num_warmup = 3, .num_iters = 30};
        options.budget_ms = std::max(left, 1.0);
        operations.push_back(operation_json(invocation, options));
    }
    Json warnings = Json::array();
    for (const std::string& warning : ops::selector().warnings()) {
        warnings.push_back(base::printable(warning));
    }
    return {{"operations", std::move(operations)}, {"warnings", std::move(warnings)}};
}

}  // namespace twinkle::worker
