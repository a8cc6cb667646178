#include "base/file.h"
#include "base/text.h"
#include "runtime/model/debug_info.h"
#include "runtime/model/model_file.h"
#include "runtime/trial/sandbox.h"
#include "worker/commands.h"
#include "worker/kernelizing.h"
#include "worker/site_labels.h"
#include "worker/tune_sites.h"
#include "worker/written.h"

namespace twinkle::worker {

namespace {

using base::Json;

Json with_verification(const Report& report, const Json& verified) {
    Json json = base::parse_json(report.to_json(), "report");
    json.update(verified);
    return json;
}

// Writes the model's file, if one is asked for.
Json save(const Request& request, const Channel& channel, Kernelized& made, runtime::Plan& plan,
          const Json& verified) {
    Json file;
    if (request.output && !request.dry_run) {
        channel.stage("save", base::display_path(*request.output));
        if (request.strip_debug) {
            runtime::strip_debug_info(made.model);
        }
        label_sites(made.model, made.report, plan);
        file = written(runtime::save_model(made.model, *request.output));
    }
    if (request.report) {
        Report report = made.report;
        report.warnings.insert(report.warnings.begin(), request.warnings.begin(),
                               request.warnings.end());
        base::write_file_atomically(*request.report,
                                    base::dump_json(with_verification(report, verified)));
    }
    return file;
}

void refuse_unchanged(const Request& request, const Report& report) {
    if (request.strict && report.count(SiteStatus::replaced) == 0) {
        throw Error(
            ErrorCode::refused,
            {.what = "no site of the model was replaced",
             .where = base::display_path(request.model),
             .why = base::join(report.warnings, "; "),
             // Strict: sites are kept only because the options have left them out.
             .hint =
                 report.sites.empty()
                     ? "bind the model's classes (`twinkle inspect` lists them), or leave out "
                       "--strict"
                     : "--only and --exclude leave no site; name fewer, or leave out --strict"});
    }
}

}  // namespace

base::Json kernelize_command(const Request& request, const Channel& channel) {
    Kernelizing kernelizing(request, channel);
    Kernelized made = kernelizing.kernelize();
    refuse_unchanged(request, made.report);
    base::Json verified = {{"shapes", base::Json::array()}, {"tolerance", 1.0}};
    if (request.verify) {
        auto context = kernelizing.verification(made.report);
        kernelizing.verify_conversion(made, context);
        request.tune ? tune_sites(kernelizing, made, context, request, channel)
                     : void(kernelizing.verify_sites(made, context));
        kernelizing.say_if_nothing_is_left(made.report);
        kernelizing.verify_whole(made, context);
        verified = verified_on(context);
    }
    const auto unconfined = runtime::unconfined_so_far();
    made.report.warnings.insert(made.report.warnings.end(), unconfined.begin(), unconfined.end());
    const Json file = save(request, channel, made, kernelizing.plan(), verified);
    Json result = with_verification(made.report, verified);
    if (!file.is_null()) {
        result["written"] = file;
    }
    return result;
}

}  // namespace twinkle::worker
