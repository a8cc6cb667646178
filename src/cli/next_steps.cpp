#include "cli/next_steps.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "cli/json_fields.h"
#include "cli/report_parts.h"
#include "cli/shell_command.h"
#include "target/machine.h"
#include "target/runtime.h"

namespace twinkle::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t most_steps = 3;
constexpr const char* described_inputs = "int64[1,128]:0..32000";

// A call and what came of it.
struct Outcome {
    const std::vector<Option>& declared;
    const Arguments& arguments;
    const Globals& globals;
    const protocol::Request& request;
    const base::Json& report;

    std::string model() const { return *arguments.text("MODEL"); }
    bool given(const char* key) const { return arguments.flag(key); }
    bool replaced() const { return count_of(report, "replaced") > 0; }

    // This call, but for these options.
    ShellCommand again(const std::set<std::string>& but) const {
        ShellCommand command("kernelize", globals);
        command.word(path_word(model())).options(declared, arguments, but);
        return command;
    }

    // A file that begins with a dash would be read as an option.
    static std::string path_word(const std::string& path) {
        return path.starts_with('-') ? "./" + path : path;
    }
};

// inputs.pt beside the model, as torch.save writes it in the examples; else a description.
std::string likely_inputs(const std::string& model) {
    const auto beside = fs::path(model).parent_path() / "inputs.pt";
    std::error_code error;
    return fs::is_regular_file(beside, error) ? beside.string() : described_inputs;
}

void add_inputs(const Outcome& outcome, std::vector<NextStep>& steps) {
    if (outcome.given("inputs") || outcome.given("target") || !outcome.replaced()) {
        return;
    }
    const auto inputs = likely_inputs(outcome.model());
    const std::string shapes = inputs == described_inputs ? "; with the shapes of your model" : "";
    steps.push_back({"is it right, and how much faster" + shapes,
                     outcome.again({"no-verify", "no-measure"}).option("--inputs", inputs).text()});
}

// This LibTorch can use a GPU, and there is one.
bool has_gpu() {
    const auto& machine = target::this_machine();
    const auto runtime = target::choose_runtime(machine);
    const bool built = runtime && runtime->backend.device() == "cuda";
    const auto driver = built && machine.may_have_cuda() ? machine.cuda_driver() : std::nullopt;
    return driver && !driver->gpus.empty();
}

void add_device(const Outcome& outcome, std::vector<NextStep>& steps) {
    if (!outcome.given("device") && !outcome.given("target") &&
        shown_text(outcome.report, "device") == "cpu" && has_gpu()) {
        steps.push_back({"for the GPU of this machine",
                         outcome.again({"device"}).option("--device", "cuda").text()});
    }
}

void add_tune(const Outcome& outcome, std::vector<NextStep>& steps) {
    if (outcome.request.verify && !outcome.request.tune && outcome.request.precisions.empty() &&
        !outcome.given("choices") && outcome.replaced()) {
        steps.push_back({"keep only what is surely faster, site by site",
                         outcome.again({"no-measure"}).word("--tune").text()});
    }
}

// Whether the processor multiplies matrices of bfloat16 itself.
bool is_fast_in_bfloat16() {
    const auto features = target::this_machine().cpu().features;
    constexpr std::array names = {"amx_bf16", "avx512_bf16", "bf16"};
    return std::ranges::any_of(
        names, [&](const char* name) { return std::ranges::count(features, name) > 0; });
}

void add_dtype(const Outcome& outcome, std::vector<NextStep>& steps) {
    const bool gpu = shown_text(outcome.report, "device").starts_with("cuda");
    if (!outcome.given("dtype") && shown_text(outcome.report, "weights_dtype") == "float32" &&
        outcome.request.verify && (gpu || is_fast_in_bfloat16())) {
        // Another file: the one just written is the exact model.
        const auto output = fs::path(outcome.model()).stem().string() + ".bfloat16.pt";
        steps.push_back({"in half precision: half the memory, often faster",
                         outcome.again({"dtype", "output", "report"})
                             .option("--dtype", "bfloat16")
                             .option("-o", output)
                             .text()});
    }
}

void add_bench(const Outcome& outcome, std::vector<NextStep>& steps) {
    const auto& inputs = outcome.arguments.list("inputs");
    if (!outcome.request.verify || inputs.empty() || outcome.given("dtype") ||
        !outcome.replaced()) {
        return;
    }
    // It takes one set of inputs: the first, on which this call has measured.
    ShellCommand command("bench", outcome.globals);
    command.word(Outcome::path_word(outcome.model()))
        .option("--inputs", inputs.front())
        .options(bench_command().options, outcome.arguments,
                 {"inputs", "threads", "duration", "runs", "warmup", "svg"});
    steps.push_back({"how fast every site is, and the frozen models", command.text()});
}

void add_page(const Outcome& outcome, std::vector<NextStep>& steps) {
    if (!outcome.given("report") && !list_of(outcome.report, "sites").empty()) {
        const auto page = fs::path(outcome.model()).stem().string() + ".html";
        steps.push_back({"a page with every site and its reason",
                         outcome.again({}).option("--report", page).text()});
    }
}

}  // namespace

std::vector<NextStep> next_steps(const std::vector<Option>& declared, const Arguments& arguments,
                                 const Globals& globals, const protocol::Request& request,
                                 const base::Json& report) {
    const Outcome outcome{declared, arguments, globals, request, report};
    std::vector<NextStep> steps;
    for (const auto& add : {add_inputs, add_device, add_tune, add_dtype, add_bench, add_page}) {
        add(outcome, steps);
    }
    steps.resize(std::min(steps.size(), most_steps));
    return steps;
}

void say_next_steps(const std::vector<NextStep>& steps, Console& console) {
    for (const auto& [why, command] : steps) {
        console.note("next, " + why + ":\n  " + command);
    }
}

}  // namespace twinkle::cli
