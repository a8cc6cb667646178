#include "base/file.h"
#include "base/text.h"
#include "kernel/layers.h"
#include "runtime/inspect/source_trial.h"
#include "worker/commands.h"
#include "worker/mapping_of.h"

namespace twinkle::worker {

namespace {

base::Json to_json(const std::vector<runtime::SourceTrial>& trials) {
    base::Json list = base::Json::array();
    for (const runtime::SourceTrial& one : trials) {
        list.push_back({{"name", one.name},
                        {"outcome", runtime::outcome_name(one.outcome)},
                        {"types", base::printable(one.types)},
                        {"why", base::printable(one.why)}});
    }
    return list;
}

runtime::TriedPackage package_of(const Request& request) {
    runtime::TriedPackage package;
    package.sources = kernel::read_package(*request.kernel);
    if (request.build.is_object()) {
        package.op_namespace = request.build.value("op_namespace", "");
        package.variant = request.build.value("variant", "");
        for (const base::Json& op : request.build.value("operators", base::Json::array())) {
            package.operators.push_back({op.value("name", ""), op.value("schema", "")});
        }
    }
    return package;
}

}  // namespace

base::Json compile_kernel_command(const Request& request, const Channel& channel) {
    channel.stage("compile", base::display_path(kernel_of(request)));
    const runtime::SourceTrials trials = runtime::try_sources(package_of(request));
    return {{"layers", to_json(trials.layers)}, {"functions", to_json(trials.functions)}};
}

}  // namespace twinkle::worker
