// twinkle kernelize: a saved model in, a model with kernels and a report out.

#include "base/file.h"
#include "base/text.h"
#include "cli/candidates_text.h"
#include "cli/choices_file.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_fields.h"
#include "cli/kernelize_options.h"
#include "cli/kernelize_report.h"
#include "cli/model_mapping.h"
#include "cli/model_request.h"
#include "cli/next_steps.h"
#include "cli/output_file.h"
#include "cli/precision_options.h"
#include "cli/report_page.h"
#include "cli/report_parts.h"
#include "cli/request_choices.h"
#include "cli/resolution.h"
#include "cli/tuning_text.h"
#include "cli/verification_options.h"
#include "cli/written_file.h"
#include "project/fallback_names.h"

namespace twinkle::cli {
namespace fs = std::filesystem;
namespace {

void require(bool holds, const std::string& what, const std::string& hint) {
    if (!holds) {
        throw Error(ErrorCode::malformed, {.what = what, .where = {}, .why = {}, .hint = hint});
    }
}

// model.pt → model.kernelized.pt, in the current folder.
std::string default_output(const std::string& model) {
    return fs::path(model).stem().string() + ".kernelized.pt";
}

bool is_page(const fs::path& file) {
    const auto suffix = file.extension();
    return suffix == ".html" || suffix == ".htm";
}

// Files that are written: the model, and the report. Returns the report's if it is to be a page,
// which is written here; the worker writes JSON.
std::optional<fs::path> add_outputs(protocol::Request& request, const Arguments& arguments,
                                    std::vector<fs::path> sources) {
    if (!arguments.flag("dry-run")) {
        const auto output =
            arguments.text("output").value_or(default_output(*arguments.text("MODEL")));
        request.output = output_file(output, OutputKind::tensors, sources);
        sources.emplace_back(*request.output);
    }
    const auto report = arguments.text("report");
    if (!report) {
        return std::nullopt;
    }
    require(base::absolute_path(*report) != request.output,
            "the model and the report cannot be one file", "choose another file for --report");
    auto file = output_file(*report, OutputKind::text, sources);
    request.modules = is_page(file);
    if (request.modules) {
        return file;
    }
    request.report = std::move(file);
    return std::nullopt;
}

// Returns the page to write, if one is asked for.
std::optional<fs::path> add_files(protocol::Request& request, const Arguments& arguments,
                                  const Console& console) {
    request.model = existing_file(*arguments.text("MODEL"), "model");
    request.model_name = arguments.text("model").value_or("");
    std::vector<fs::path> sources = {request.model};
    if (const auto map = arguments.text("map")) {
        sources.push_back(existing_file(*map, "mapping"));
    }
    if (const auto target = arguments.text("target")) {
        if (const auto file = target_file(console, *target)) {
            sources.push_back(*file);
        }
    }
    if (const auto choices = arguments.text("choices")) {
        require(!request.tune && request.precisions.empty(),
                "--choices says what is chosen, and --tune and --precision find it out",
                "leave out one of them");
        sources.push_back(existing_file(*choices, "file of choices"));
        request.choices = read_choices(sources.back());
    }
    for (const std::string& inputs : arguments.list("inputs")) {
        if (!request.inputs) {
            request.inputs = inputs_argument(inputs);
            sources.emplace_back(*request.inputs);
        } else {
            request.more_inputs.push_back(inputs_argument(inputs));
            sources.emplace_back(request.more_inputs.back());
        }
    }
    return add_outputs(request, arguments, sources);
}

void add_choices(protocol::Request& request, const Arguments& arguments) {
    const bool strict = arguments.flag("strict");
    const auto fallback = arguments.text("fallback");
    require(!strict || !fallback || fallback == "false",
            "--strict and --fallback " + fallback.value_or("") + " contradict each other",
            "--strict allows no fallback");
    request.load_kernels = !arguments.text("target");
    request.fallback = checked_fallbacks(strict ? "false" : fallback.value_or("true"));
    request.strict = strict || fallback == "false";
    add_verification(request, arguments);
    add_precision(request, arguments);
    request.dry_run = arguments.flag("dry-run");
    request.strip_debug = arguments.flag("strip-debug");
    add_form(request, arguments);
    request.profile_names = arguments.flag("profile-names");
    add_choice_of_sites(request, arguments);
    if (const auto dtype = arguments.text("dtype")) {
        request.dtype = checked_dtype(*dtype);
    }
}

// Gives advice for a model in which nothing was replaced.
void say_what_would_help(const protocol::Request& request, const Mapping& mapping,
                         const base::Json& report, const std::string& model, Console& console) {
    if (report.value("replaced", std::size_t(0)) != 0) {
        return;
    }
    if (report.value("sites", base::Json::array()).empty()) {
        console.note(
            "no class, function or formula of the model is bound to a kernel: twinkle "
            "inspect " +
            base::printable(model) + " lists what it has, and what kernels could take");
    }
    if (mapping.patterns.empty()) {
        console.note(
            "with presets = [\"transformers\", \"patterns\"] formulas are found, too, "
            "whatever the model's classes are called");
    }
    if (!request.inputs) {
        console.note("with --inputs functions are found that a trace has inlined");
    }
}

void write_page(const protocol::Request& request, base::Json report, const fs::path& file) {
    base::Json warnings = request.warnings;
    for (const auto& warning : list_of(report, "warnings")) {
        warnings.push_back(warning);
    }
    report["warnings"] = std::move(warnings);
    const auto page = report_page(report, request.model.filename().string(),
                                  verification_text(request, report, 0));
    const InterruptDelay whole_file;
    base::write_file_atomically(file, page);
}

void print_report(const protocol::Request& request, const base::Json& report, Console& console) {
    const bool each = console.globals().verbosity > 0;
    const auto columns = console.result_columns();
    say_warnings(report, console);
    console.result(kernelize_table(report, each, columns, console.result_color()) +
                   (each ? candidates_text(report, columns) : "") +
                   tuning_text(report, columns, console.result_color()) +
                   verification_text(request, report, columns));
}

// A module is in training until it is told otherwise; one wrapped around a model, too.
void say_training(const protocol::Request& request, const base::Json& report, Console& console) {
    if (!request.mode && shown_text(report, "mode").starts_with("training")) {
        console.note(
            "the model is saved in training mode: kernels must give gradients, which are compared, "
            "too; if it only serves: --mode inference, or .eval() before it is saved");
    }
}

int run_kernelize(const Arguments& arguments, Console& console) {
    protocol::Request request;
    request.command = "kernelize";
    add_choices(request, arguments);
    const auto page = add_files(request, arguments, console);
    const auto worker = find_worker(console);
    const auto mapping = add_mapping(request, arguments, console, arguments.text("target"));

    auto report = run_worker(worker, request, console);
    console.progress().show("checking what was written");
    require_written(report, request);
    console.progress().clear();
    say_what_would_help(request, mapping, report, *arguments.text("MODEL"), console);
    say_training(request, report, console);
    const auto steps =
        next_steps(kernelize_command().options, arguments, console.globals(), request, report);
    if (!console.json()) {
        print_report(request, report, console);
    }
    if (request.output) {
        console.note("wrote " + base::display_path(*request.output));
    }
    if (page) {
        write_page(request, report, *page);
        console.note("wrote " + base::display_path(*page));
    }
    say_next_steps(steps, console);
    if (console.json()) {
        report.erase("modules");
        console.result("kernelize", std::move(report));
    }
    return 0;
}

}  // namespace

Command kernelize_command() {
    return {
        .name = "kernelize",
        .summary = "Put kernels into a saved model",
        .description =
            "Replaces layers, functions and formulas of a TorchScript model by kernels, as the "
            "mapping says, and writes the result as a new model; the original is not touched. "
            "Prints every kind of site: the kernel that took it, or why it was kept.\n\n"
            "A function whose calls a trace has inlined needs --inputs: a run on them finds out "
            "what it was called with, and proves what stands for it.\n\n"
            "With --inputs the result is verified: every replaced site runs on the inputs that it "
            "really sees, and on those that it sees with other batches and lengths, next to a "
            "double-precision run of the original; a site whose error is larger than it may be is "
            "put back. Then the whole model is compared in the same way. Without inputs nothing is "
            "compared, and the report says so.\n\n"
            "A site may have several candidates: tables of the manifest with one name. The first "
            "one serves it, or the next where that is not right. With --tune each is measured "
            "beside the original in several sizes of the inputs. Where the fastest differs by "
            "size, each call of the written model chooses by the size of its own inputs. What was "
            "measured is remembered (twinkle tune show).\n\n"
            "With --precision layers may compute with fewer bits: their weights are prepared once, "
            "the file is smaller. The error of each is measured, and the cheapest are taken as "
            "long as the whole model's error on all inputs stays below --max-error. Nothing is "
            "written that exceeds it.\n\n"
            "The report has a line for sites that are alike, and with -v one for each, with its "
            "reason, what was measured, and why other candidates were not taken. A verified model "
            "is also measured: the original and the kernelized one in turns, for a second or two. "
            "Times of single sites are those of twinkle bench.",
        .arguments = {{.name = "MODEL",
                       .help = "A model that torch.jit.save or torch.export.save wrote"}},
        .options =
            {{.names = "-o,--output",
              .value = "FILE",
              .help =
                  "Where to write the model (default: NAME.kernelized.pt in the current folder)",
              .kind = ValueKind::file},
             map_option(),
             {.names = "--choices",
              .value = "FILE",
              .help = "Choose for each site what another kernelize of this model has chosen, as "
                      "twinkle inspect --choices wrote it; nothing is measured. A site that "
                      "--precision made coarser keeps its original",
              .kind = ValueKind::file},
             {.names = "--target",
              .value = "TARGET",
              .help = "The machine that the model is for: a name from [targets] in the manifest, a "
                      "file from twinkle env --json, or torch=2.13,backend=cu130,arch=9.0,…; no "
                      "kernel is loaded",
              .kind = ValueKind::file},
             mode_option(),
             device_option(),
             dtype_option(),
             several_inputs_option(),
             verify_option(),
             no_verify_option(),
             tolerance_option(),
             precision_option(),
             max_error_option(),
             agree_option(),
             tune_option(),
             budget_option(),
             no_measure_option(),
             tune_sizes_option(),
             only_option(),
             exclude_option(),
             {.names = "--fallback",
              .value = "SET",
              .help = "When a site may keep its original: true (default), all (also cannot-load), "
                      "false, or a list of " +
                      base::join(project::fallback_names, ", "),
              .kind = ValueKind::choice,
              .choices = project::fallback_words()},
             {.names = "--strict",
              .value = "",
              .help = "Write nothing, and fail, where a site would keep its original (exit status "
                      "6) or its values differ (4)"},
             model_name_option(),
             allow_io_option(),
             {.names = "--strip-debug",
              .value = "",
              .help = "Leave out where the model's code came from: the Python stacks of a trace, "
                      "with their paths, and the source of scripted functions"},
             graphs_option(),
             freeze_option(),
             {.names = "--profile-names",
              .value = "",
              .help = "Make each replaced site a range of its name for LibTorch's profiler, and "
                      "for NVTX where that emits it; costs a little in each call"},
             {.names = "--dry-run", .value = "", .help = "Report, but write no model"},
             {.names = "--report",
              .value = "FILE",
              .help = "Also write the report: as a page for a browser, if it is called so "
                      "(.html), else as JSON",
              .kind = ValueKind::file}},
        .examples =
            {{"With the bundled kernels", "twinkle kernelize model.pt -o fast.pt"},
             {"As a mapping says, and compare every site",
              "twinkle kernelize model.pt --map twinkle.map.json --inputs inputs.pt"},
             {"Only what is measured to be faster than the original",
              "twinkle kernelize model.pt --inputs inputs.pt --tune --budget 60"},
             {"What was chosen before, for the same model, without measuring",
              "twinkle kernelize model.pt --choices choices.json -o fast.pt"},
             {"Smaller and faster, with an error of two per cent at most",
              "twinkle kernelize model.pt --inputs inputs.pt --precision int8 --max-error 0.02"},
             {"A page for a browser: the model's tree, errors, times and reasons",
              "twinkle kernelize model.pt --inputs inputs.pt --report report.html"},
             {"What would happen to the MLPs",
              "twinkle kernelize model.pt --dry-run --only 'model.layers.*.mlp'"},
             {"In half precision, for a GPU server, on a machine without one",
              "twinkle kernelize model.pt --target server.json --dtype bfloat16 -o server.pt"}},
        .run = run_kernelize};
}

}  // namespace twinkle::cli
