#include "base/file.h"
#include "base/text.h"
#include "runtime/model/debug_info.h"
#include "runtime/model/graphs_mark.h"
#include "runtime/model/inputs.h"
#include "runtime/model/model_file.h"
#include "runtime/plan/site_ranges.h"
#include "runtime/replay/graph_obstacles.h"
#include "runtime/replay/marked_model.h"
#include "runtime/trial/sandbox.h"
#include "target/machine_load.h"
#include "worker/commands.h"
#include "worker/decide_graphs.h"
#include "worker/fit_precision.h"
#include "worker/freezing.h"
#include "worker/kernelizing.h"
#include "worker/modules_json.h"
#include "worker/more_inputs.h"
#include "worker/site_labels.h"
#include "worker/times_json.h"
#include "worker/tune_sites.h"
#include "worker/whole_speed.h"
#include "worker/written.h"

#include <optional>
#include <set>
#include <string>

namespace twinkle::worker {

namespace {

using base::Json;

// The report, with what was found out of the model while it was verified.
Json with_findings(const Report& report, const Json& verified, const Json& speed) {
    Json json = base::parse_json(report.to_json(), "report");
    json.update(verified);
    json["whole"].update(speed);
    return json;
}

// The dtype of its first floating weights; null: it has none.
Json weights_dtype(const torch::jit::Module& model) {
    for (const at::Tensor& weight : model.parameters()) {
        if (weight.is_floating_point()) {
            return runtime::dtype_name(weight.scalar_type());
        }
    }
    return {};
}

std::set<std::string> replaced_sites(const Report& report) {
    std::set<std::string> names;
    for (const SiteReport& site : report.sites) {
        if (site.status == SiteStatus::replaced) {
            names.insert(site.site);
        }
    }
    return names;
}

// What the model was found to be while it was verified and measured.
struct Found {
    Json verified = {{"shapes", Json::array()}, {"tolerance", 1.0}};
    Json speed = Json::object();
    Json precision = Json::object();
    std::optional<Freezing> freezing;     // --freeze
    std::optional<DecidedGraphs> graphs;  // the model is marked for them

    bool frozen() const { return freezing && freezing->chosen; }
};

// Writes the model's file, if one is asked for.
Json save(const Request& request, const Channel& channel, Kernelized& made, runtime::Plan& plan,
          const Found& found) {
    if (!request.output || request.dry_run) {
        return {};
    }
    channel.stage("save", base::display_path(*request.output));
    if (request.strip_debug) {
        runtime::strip_debug_info(made.model);
    }
    label_sites(made.model, made.report, plan);
    if (request.profile_names) {
        runtime::add_ranges(made.model, replaced_sites(made.report));
    }
    if (found.graphs) {
        runtime::mark_for_graphs(made.model, runtime::marked_models(found.graphs->text));
    }
    found.frozen() ? save_frozen(made, request) : runtime::save_model(made.model, *request.output);
    return written(*request.output);
}

void write_report(const Request& request, Json report) {
    if (request.report) {
        Json warnings = request.warnings;
        warnings.insert(warnings.end(), report["warnings"].begin(), report["warnings"].end());
        report["warnings"] = std::move(warnings);
        base::write_file_atomically(*request.report, base::dump_json(report));
    }
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

void refuse_to_freeze_marked(const Request& request, const Kernelizing& kernelizing) {
    if (request.freeze && kernelizing.was_marked_for_graphs()) {
        throw Error(ErrorCode::refused,
                    {.what = "the kernelized model cannot be frozen",
                     .where = base::display_path(request.model),
                     .why = "it is marked for CUDA graphs, and frozen when it is loaded",
                     .hint = "leave out --freeze"});
    }
}

// Says now what every server would find out: why a marked model is never replayed.
void warn_of_graphs(Kernelized& made) {
    const auto forward = made.model.find_method("forward");
    std::string why;
    if (!forward) {
        why = "the model has no forward()";
    } else if (const auto obstacle = runtime::graph_obstacle(*forward->graph())) {
        why = *obstacle;
    } else if (made.model.hasattr("training") && made.model.is_training()) {
        why = "the model is in training";
    }
    if (!why.empty()) {
        made.report.warnings.push_back("its runs are not replayed as CUDA graphs: " + why);
    }
}

// Sites first, then the whole model, then what is only measured. Puts sites back that are wrong.
void verify_and_measure(const Request& request, const Channel& channel, Kernelizing& kernelizing,
                        Kernelized& made, double load_before, Found& found) {
    auto context = kernelizing.verification(made.report);
    add_more_inputs(request, context);
    kernelizing.verify_conversion(made, context);
    request.tune ? tune_sites(kernelizing, made, context, request, channel)
                 : void(kernelizing.verify_sites(made, context));
    if (!request.precisions.empty()) {
        found.precision["precision"] = fit_precision(kernelizing, made, context, request, channel);
    }
    kernelizing.say_if_nothing_is_left(made.report);
    kernelizing.verify_whole(made, context);
    found.verified = verified_on(context);
    if (found.graphs && request.tune && kernelizing.gpu()) {
        channel.stage("tune", "runs as CUDA graphs");
        found.graphs = decide_graphs(made.model, context);
        if (!found.graphs->problem.empty()) {
            made.report.warnings.push_back("servers will measure replays: " +
                                           found.graphs->problem);
        }
    }
    if (request.freeze) {
        found.freezing = decide_freezing(kernelizing, made, context, request, channel);
        context.frozen = found.frozen();
    }
    if (request.measure) {
        found.speed = whole_speed(request, channel, kernelizing, made, context, load_before);
    }
}

Json report_of(const Kernelized& made, const Found& found) {
    Json json = with_findings(made.report, found.verified, found.speed);
    json.update(found.precision);
    json["graphs"] = found.graphs.has_value();
    if (found.graphs && !found.graphs->shapes.empty()) {
        json["graphs_by_shape"] = found.graphs->shapes;
    }
    if (found.freezing) {
        json["frozen"] = found.freezing->json();
    }
    json["weights_dtype"] = weights_dtype(made.model);
    return json;
}

}  // namespace

base::Json kernelize_command(const Request& request, const Channel& channel) {
    const double load_before = target::load_of_others();
    Kernelizing kernelizing(request, channel);
    std::optional<GivenChoices> choices;
    if (request.choices) {
        choices.emplace(*request.choices, request.strict);
    }
    Kernelized made = kernelizing.kernelize(choices ? &*choices : nullptr);
    refuse_unchanged(request, made.report);
    refuse_to_freeze_marked(request, kernelizing);
    Found found;
    if (request.freeze) {
        found.freezing.emplace();
    }
    if (request.graphs || kernelizing.was_marked_for_graphs()) {
        warn_of_graphs(made);
        found.graphs.emplace();
    }
    if (request.verify) {
        verify_and_measure(request, channel, kernelizing, made, load_before, found);
    }
    if (choices) {
        choices->enter(made.report, kernelizing.plan());
    }
    const auto unconfined = runtime::unconfined_so_far();
    made.report.warnings.insert(made.report.warnings.end(), unconfined.begin(), unconfined.end());
    Json result = report_of(made, found);
    const Json file = save(request, channel, made, kernelizing.plan(), found);
    write_report(request, result);
    if (!file.is_null()) {
        result["written"] = file;
    }
    if (request.modules) {
        result["modules"] = modules_json(made.model);
    }
    return result;
}

}  // namespace twinkle::worker
