#include "cli/tune_model.h"

#include "base/file.h"
#include "cli/json_fields.h"
#include "cli/kernelize_options.h"
#include "cli/kernelize_report.h"
#include "cli/model_mapping.h"
#include "cli/model_request.h"
#include "cli/output_file.h"
#include "cli/report_parts.h"
#include "cli/request_choices.h"
#include "cli/tune_devices.h"
#include "cli/tune_record.h"
#include "cli/tuning_text.h"
#include "cli/verification_options.h"
#include "cli/written_file.h"
#include "target/machine_load.h"

namespace twinkle::cli {

namespace {

void add_inputs(protocol::Request& request, const Arguments& arguments, Console& console) {
    const auto& inputs = arguments.list("inputs");
    if (inputs.empty() && !arguments.flag("from")) {
        throw Error(ErrorCode::malformed,
                    {.what = "tuning a model needs inputs",
                     .where = base::display_path(request.model),
                     .why = "",
                     .hint = "add --inputs FILE, --inputs \"int64[1,128]:0..32000\", or --from "
                             "RECORD"});
    }
    for (const std::string& one : inputs) {
        request.inputs ? request.more_inputs.push_back(inputs_argument(one))
                       : void(request.inputs = inputs_argument(one));
    }
    if (arguments.flag("from")) {
        add_recorded_runs(request, arguments, console);
    }
}

void add_share(protocol::Request& request, const Arguments& arguments) {
    const tuning::Shard shard = checked_shard(arguments);
    request.shard = shard.number;
    request.shards = shard.of;
    if (shard.of > 1 && request.output) {
        throw Error(ErrorCode::malformed,
                    {.what = "a share alone knows too little to write a model",
                     .where = base::display_path(*request.output),
                     .why = "",
                     .hint = "leave out -o; import what all shares have exported, then write the "
                             "model without --shard"});
    }
    if (shard.of > 1 && request.freeze) {
        throw Error(ErrorCode::malformed,
                    {.what = "--shard and --freeze contradict each other",
                     .where = base::display_path(request.model),
                     .why = "a share alone knows too little of the whole model",
                     .hint = "leave out --freeze"});
    }
}

// Not in the report, which is to be the same in two runs.
void say_if_busy(double load, const base::Json& report, Console& console) {
    if (target::is_busy(load) && count_in(object_of(report, "tuning"), "measured") > 0) {
        console.note("other programs keep this machine busy: what was measured may be luck");
    }
}

}  // namespace

int run_tune_model(const Arguments& arguments, Console& console) {
    protocol::Request request;
    request.command = "kernelize";
    request.model = existing_file(*arguments.text("ACTION"), "model");
    std::vector<std::filesystem::path> sources = {request.model};
    add_inputs(request, arguments, console);
    sources.emplace_back(*request.inputs);
    sources.insert(sources.end(), request.more_inputs.begin(), request.more_inputs.end());
    if (const auto map = arguments.text("map")) {
        sources.push_back(existing_file(*map, "mapping"));
    }
    if (const auto output = arguments.text("output")) {
        request.output = output_file(*output, OutputKind::tensors, sources);
    }
    request.fallback = checked_fallbacks("true");
    request.dry_run = !request.output;
    request.verify = true;
    request.tune = true;
    add_tuning_limits(request, arguments);
    add_choice_of_sites(request, arguments);
    add_form(request, arguments);
    add_share(request, arguments);
    const auto gpus = chosen_gpus(arguments);
    if (gpus.size() > 1) {
        tune_on_each(gpus, arguments, console);
    }
    if (!gpus.empty()) {
        request.device = "cuda";
        request.gpu = gpus.front();
    }
    request.model_name = arguments.text("model").value_or("");
    const auto worker = find_worker(console);
    add_mapping(request, arguments, console);

    const double load_before = target::load_of_others();
    auto report = run_worker(worker, request, console);
    say_if_busy(load_before, report, console);
    require_written(report, request);
    if (console.json()) {
        console.result("tune", std::move(report));
    } else {
        say_warnings(report, console);
        const auto columns = console.result_columns();
        console.result(kernelize_table(report, console.globals().verbosity > 0, columns,
                                       console.result_color()) +
                       tuning_text(report, columns, console.result_color()) +
                       verification_text(request, report, columns));
    }
    if (request.output) {
        console.note("wrote " + base::display_path(*request.output));
    }
    return 0;
}

}  // namespace twinkle::cli
