#include "runtime/trial/kernel_trial.h"
#include "twinkle/error.h"
#include "worker/commands.h"
#include "worker/mapping_of.h"
#include "worker/unconfined.h"

namespace twinkle::worker {

base::Json kernel_operators_command(const Request& request, const Channel& channel) {
    const Mapping mapping = mapping_of(request);
    if (mapping.kernels.size() != 1) {
        throw Error(ErrorCode::malformed,
                    {.what = "the request asks for the operators of no kernel, or of several",
                     .where = "",
                     .why = "",
                     .hint = "install twinkle and its runtime in one version"});
    }
    const MappedKernel& kernel = mapping.kernels.front();
    channel.stage("load-kernel", kernel.name);
    base::Json operators = base::Json::array();
    for (const runtime::OperatorFacts& op : runtime::registered_operators(kernel)) {
        operators.push_back({{"name", op.name}, {"schema", op.schema}});
    }
    warn_of_unconfined(channel);
    return {{"operators", std::move(operators)}};
}

}  // namespace twinkle::worker
