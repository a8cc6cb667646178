// twinkle bench: compares a model as it is with the same model with kernels.

#include "base/file.h"
#include "base/number.h"
#include "cli/bench_drawing.h"
#include "cli/bench_report.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/kernelize_options.h"
#include "cli/model_mapping.h"
#include "cli/model_request.h"
#include "cli/output_file.h"
#include "cli/report_parts.h"
#include "cli/request_choices.h"

namespace twinkle::cli {
namespace fs = std::filesystem;
namespace {

constexpr double longest_duration = 24 * 3600;
constexpr unsigned most_threads = 4096;
constexpr unsigned most_runs = 10000;

[[noreturn]] void wrong_number(const std::string& option, const std::string& text,
                               const std::string& what) {
    throw Error(ErrorCode::malformed, {.what = "--" + option + " cannot be '" + text + "'",
                                       .where = {},
                                       .why = "it is " + what,
                                       .hint = {}});
}

// None: the option is not given.
template <typename Number>
std::optional<Number> given_number(const Arguments& arguments, const std::string& option,
                                   Number least, Number most, const std::string& what) {
    const auto text = arguments.text(option);
    if (!text) {
        return std::nullopt;
    }
    const auto number = base::parse_number<Number>(*text);
    if (!number || !(*number >= least && *number <= most)) {
        wrong_number(option, *text, what);
    }
    return number;
}

// Returns the path of the drawing, if one is asked for.
std::optional<fs::path> add_files(protocol::Request& request, const Arguments& arguments) {
    request.model = existing_file(*arguments.text("MODEL"), "model");
    request.model_name = arguments.text("model").value_or("");
    const auto inputs = arguments.text("inputs");
    if (!inputs) {
        throw Error(ErrorCode::malformed,
                    {.what = "bench needs inputs",
                     .where = {},
                     .why = {},
                     .hint = "add --inputs FILE, or --inputs \"int64[1,128]:0..32000\""});
    }
    request.inputs = inputs_argument(*inputs);
    std::vector<fs::path> sources = {request.model, *request.inputs};
    if (const auto map = arguments.text("map")) {
        sources.push_back(existing_file(*map, "mapping"));
    }
    const auto drawing = arguments.text("svg");
    return drawing ? std::optional(output_file(*drawing, OutputKind::text, sources)) : std::nullopt;
}

void draw(const base::Json& report, const fs::path& model, const fs::path& file) {
    const auto drawing = bench_drawing(report, model.filename().string());
    const InterruptDelay whole_file;
    base::write_file_atomically(file, drawing);
}

int run_bench(const Arguments& arguments, Console& console) {
    protocol::Request request;
    request.command = "bench";
    request.fallback = checked_fallbacks("true");
    add_choice_of_sites(request, arguments);
    request.threads =
        given_number(arguments, "threads", 1u, most_threads, "a number of threads, 1 to 4096");
    request.duration = given_number(arguments, "duration", 1e-3, longest_duration,
                                    "a number of seconds, up to a day");
    request.runs = given_number(arguments, "runs", 1u, most_runs, "a number of runs, 1 to 10000");
    request.warm_up =
        given_number(arguments, "warmup", 0u, most_runs, "a number of runs, 0 to 10000")
            .value_or(request.warm_up);
    const auto svg = add_files(request, arguments);
    const auto worker = find_worker(console);
    add_mapping(request, arguments, console);

    auto report = run_worker(worker, request, console);
    report["model"] = base::display_path(request.model);
    if (console.json()) {
        console.result("bench", report);
    } else {
        say_warnings(report, console);
        console.result(bench_tables(report, console.globals().verbosity > 0,
                                    console.result_columns(), console.result_color()));
    }
    // Comes last: if it fails, the long measurement is not lost.
    if (svg) {
        draw(report, request.model, *svg);
        console.note("wrote " + base::display_path(*svg));
    }
    return 0;
}

}  // namespace

Command bench_command() {
    return {
        .name = "bench",
        .summary = "Measure a model with kernels against the original",
        .description =
            "Kernelizes a model in memory, as twinkle kernelize --verify does, and measures it "
            "against the original on the same inputs: every replaced site alone, on the inputs "
            "that it really sees, then the whole models, the original and the kernelized one, "
            "each as it is and frozen. Errors are those of --verify, against a double-precision "
            "run of the original; a site that is not right is put back.\n\nThe contestants take "
            "turns, run by run, on the same weights. Shown are medians and, as a share of them, "
            "half the distance between the quartiles; and how many times as fast the kernelized "
            "one is: the median of that ratio over the turns. Where the times overlap, from "
            "quartile to quartile, or differ by less than 2 %, there is no difference. With --mode "
            "training a run is forward and backward. Nothing is written but the drawing.",
        .arguments = {{.name = "MODEL",
                       .help = "A model that torch.jit.save or torch.export.save wrote"}},
        .options = {inputs_option(),
                    map_option(),
                    mode_option(),
                    {.names = "--device",
                     .value = "DEVICE",
                     .help = "Where to run (default: cpu); on a GPU runs follow each other as in a "
                             "server, and what they take together is waited for",
                     .kind = ValueKind::choice,
                     .choices = {"cpu", "cuda"}},
                    {.names = "--threads",
                     .value = "N",
                     .help = "Threads of LibTorch (default: what it chooses: OMP_NUM_THREADS, or "
                             "one a core)"},
                    only_option(),
                    exclude_option(),
                    model_name_option(),
                    allow_io_option(),
                    {.names = "--duration",
                     .value = "SECONDS",
                     .help = "How long to measure (default: 10): half for the whole models, half "
                             "for the sites; at least 6 runs of everything"},
                    {.names = "--runs",
                     .value = "N",
                     .help = "Measure so many runs of everything, however long they take"},
                    {.names = "--warmup",
                     .value = "N",
                     .help = "Runs of everything before it is measured (default: 3)"},
                    {.names = "--svg",
                     .value = "FILE",
                     .help = "Also draw the comparison",
                     .kind = ValueKind::file}},
        .examples = {{"What the bundled kernels bring",
                      "twinkle bench model.pt --inputs inputs.pt --svg bench.svg"},
                     {"A prompt of 512 tokens on 4 threads",
                      "twinkle bench model.pt --inputs \"int64[1,512]:0..32000\" --threads 4"},
                     {"The figures, for a script",
                      "twinkle bench model.pt --inputs inputs.pt --json | jq .speedups"}},
        .run = run_bench};
}

}  // namespace twinkle::cli
