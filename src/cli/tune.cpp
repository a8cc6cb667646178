// twinkle tune: measures the kernels of a model; what was measured, to look at, to carry elsewhere,
// to forget.

#include <algorithm>

#include "base/file.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/kernelize_options.h"
#include "cli/output_file.h"
#include "cli/tune_devices.h"
#include "cli/tune_model.h"
#include "cli/tune_record.h"
#include "cli/tune_report.h"
#include "cli/verification_options.h"
#include "target/machine.h"
#include "tuning/collection.h"
#include "tuning/store.h"

namespace twinkle::cli {
namespace {

using base::Json;
using tuning::Entries;
using tuning::Store;

Entries read_file(const std::string& path) {
    return tuning::read_export(
        base::read_file(path, "export of measurements", tuning::largest_export),
        base::display_path(path));
}

// What cannot be read is said, and counts as not there.
Entries read_store(const Store& store, Console& console) {
    Store::Found found = store.all();
    for (const auto& [file, rejected] : found.rejected) {
        console.warn(base::display_path(file) + ": " + rejected.why);
    }
    Entries entries;
    for (auto& entry : found.entries) {
        tuning::join(entries, std::move(entry));
    }
    return entries;
}

// The file to write, checked before anything is read; "-" is standard output.
std::filesystem::path checked_output(const std::string& output, bool json) {
    check_standard_output(output, json);
    return output == "-" ? std::filesystem::path(output)
                         : output_file(output, OutputKind::text, {});
}

int write_to(const std::filesystem::path& file, const Entries& entries, Console& console) {
    if (file == "-") {
        console.result(tuning::export_text(entries, file.string()));
        return 0;
    }
    base::write_file_atomically(file, tuning::export_text(entries, base::display_path(file)));
    if (console.json()) {
        console.result("tune", {{"file", file.string()}, {"entries", entries.size()}});
    } else {
        console.note("wrote " + base::display_path(file) + ": " +
                     base::counted(entries.size(), "measurement"));
    }
    return 0;
}

int show(const Store& store, Console& console) {
    const Entries entries = read_store(store, console);
    if (console.json()) {
        console.result("tune", measurements_json(store.root(), entries));
        return 0;
    }
    console.result(measurements_table(entries));
    console.note(base::display_path(store.root()) + ": " +
                 base::counted(entries.size(), "measurement"));
    return 0;
}

int import(const Store& store, const std::string& path, Console& console) {
    const Entries entries = read_file(path);
    std::size_t written = 0;
    std::string why;
    for (const auto& [identity, entry] : entries) {
        const std::string problem = store.put(entry);
        written += problem.empty() ? 1 : 0;
        why = problem.empty() ? why : problem;
    }
    if (!why.empty()) {
        throw Error(ErrorCode::failed,
                    {.what = "not all measurements could be written",
                     .where = base::display_path(store.root()),
                     .why = std::to_string(written) + " of " + std::to_string(entries.size()) +
                            " were: " + why,
                     .hint = "import the file again; what is there already stays"});
    }
    if (console.json()) {
        console.result("tune", {{"dir", store.root().string()}, {"entries", written}});
    } else {
        console.note("imported " + base::counted(written, "measurement") + " into " +
                     base::display_path(store.root()));
    }
    return 0;
}

int merge(const std::vector<std::string>& files, const std::string& output, Console& console) {
    const auto to = checked_output(output, console.json());
    Entries all;
    for (const std::string& file : files) {
        for (const auto& [identity, entry] : read_file(file)) {
            tuning::join(all, entry);
        }
    }
    return write_to(to, all, console);
}

int clear(const Store& store, Console& console) {
    const Store::Cleared cleared = store.clear();
    if (!cleared.problem.empty()) {
        throw Error(ErrorCode::failed, {.what = "not all measurements could be removed",
                                        .where = base::display_path(store.root()),
                                        .why = cleared.problem,
                                        .hint = ""});
    }
    if (console.json()) {
        console.result("tune", {{"dir", store.root().string()}, {"removed", cleared.entries}});
    } else {
        console.note("removed " + base::counted(cleared.entries, "measurement"));
    }
    return 0;
}

[[noreturn]] void wrong_usage(const std::string& what) {
    throw Error(
        ErrorCode::malformed,
        {.what = what, .where = "", .why = "", .hint = "twinkle tune --help shows the actions"});
}

const std::vector<std::string> actions = {"show", "export", "import", "merge", "clear"};
// Options of tuning a model that no action takes.
constexpr const char* of_models[] = {
    "inputs", "map",      "budget", "tune-sizes", "only",     "exclude", "mode",   "device",
    "model",  "allow-io", "from",   "shard",      "recorded", "devices", "graphs", "freeze"};
// Those that tuning the calls of operations takes, too.
const std::vector<std::string> of_operations = {"from", "shard", "budget"};

void refuse_options_of_models(const Arguments& arguments, const std::string& what,
                              const std::vector<std::string>& but = {}) {
    for (const std::string option : of_models) {
        if (arguments.flag(option) && std::ranges::find(but, option) == but.end()) {
            wrong_usage(what + " takes no --" + option + ", which is for a model");
        }
    }
}

// How many files an action takes, and whether -o is for it.
void check_usage(const Arguments& arguments) {
    const std::string action = *arguments.text("ACTION");
    const std::size_t files = arguments.list("FILE").size();
    const bool output = arguments.text("output").has_value();
    const bool one = action == "export" || action == "import";
    if (one && files != 1) {
        wrong_usage(action + " takes one file");
    }
    if (action == "merge" && files == 0) {
        wrong_usage("merge takes the files to merge");
    }
    if (!one && action != "merge" && files > 0) {
        wrong_usage(action + " takes no file");
    }
    if ((action == "merge") != output) {
        wrong_usage(output ? "only merge and a model take -o" : "merge needs -o FILE");
    }
    refuse_options_of_models(arguments, action);
}

// What is no action is a model, if there is such a file.
bool is_model(const Arguments& arguments) {
    const std::string action = *arguments.text("ACTION");
    if (std::ranges::find(actions, action) != actions.end()) {
        return false;
    }
    const auto near = base::nearest(action, actions);
    if (near && !std::filesystem::exists(action)) {
        wrong_usage("there is no action or model '" + action + "'; did you mean " + *near + "?");
    }
    if (!arguments.list("FILE").empty()) {
        wrong_usage("one model is tuned at a time");
    }
    return true;
}

int run_tune(const Arguments& arguments, Console& console) {
    if (!arguments.text("ACTION")) {
        if (!arguments.flag("from")) {
            wrong_usage("there is nothing to tune: name a model, an action, or --from RECORD");
        }
        if (arguments.flag("output")) {
            wrong_usage("only merge and a model take -o");
        }
        refuse_options_of_models(arguments, "--from without a model", of_operations);
        return run_tune_operations(arguments, console);
    }
    if (is_model(arguments)) {
        if (arguments.flag("recorded") && !arguments.flag("from")) {
            wrong_usage("--recorded names a model of a record, which needs --from RECORD");
        }
        return run_tune_model(arguments, console);
    }
    check_usage(arguments);
    const std::string action = *arguments.text("ACTION");
    const auto& files = arguments.list("FILE");
    const auto output = arguments.text("output");
    const Store store(Store::usual_place(target::this_machine()));
    if (action == "show") {
        return show(store, console);
    }
    if (action == "export") {
        const auto to = checked_output(files.front(), console.json());
        return write_to(to, read_store(store, console), console);
    }
    if (action == "import") {
        return import(store, files.front(), console);
    }
    if (action == "merge") {
        return merge(files, *output, console);
    }
    return clear(store, console);
}

}  // namespace

Command tune_command() {
    return {
        .name = "tune",
        .summary = "Measure the kernels of a model, and look after what was measured",
        .description =
            "With a model: measures the candidates of its sites beside the original, in several "
            "sizes of the inputs, as far as that is not known yet, and remembers it. With -o a "
            "model is written in which each call gets what is fastest for its size, as kernelize "
            "--tune does. With --from the sizes are those of a server's record; without a model, "
            "the calls of the bundled operations in it are tuned.\n\n"
            "Programs that tune (twinkle/operation.h) keep what they measure in the user's cache, "
            "a file for each measurement, in a folder for each device. The commands need no "
            "LibTorch.\n\n"
            "show: what was measured, the configuration of an operation that is chosen, and the "
            "fastest candidate of a site. export: all of it as one sorted JSON file, to review and "
            "to carry to other machines. import: joins such a file with what is there. merge: "
            "joins files, with the same result in whatever order; of two measurements of the same "
            "the better one stays. clear: forgets everything.\n\n"
            "Measurements of other devices and other builds of a kernel are kept beside each other "
            "and do not count for each other.",
        .arguments = {{.name = "ACTION",
                       .help = "A model to tune, or show, export, import, merge or clear",
                       .kind = ValueKind::file,
                       .choices = actions,
                       .required = false},
                      {.name = "FILE",
                       .help = "export: the file to write, or -; import, merge: files to read",
                       .required = false,
                       .repeatable = true}},
        .options = {{.names = "-o,--output",
                     .value = "FILE",
                     .help =
                         "merge: the file to write, or -; a model: where to write the tuned one",
                     .kind = ValueKind::file},
                    several_inputs_option(),
                    from_option(),
                    recorded_option(),
                    shard_option(),
                    devices_option(),
                    map_option(),
                    budget_option(),
                    tune_sizes_option(),
                    mode_option(),
                    device_option(),
                    graphs_option(),
                    freeze_option(),
                    only_option(),
                    exclude_option(),
                    model_name_option(),
                    allow_io_option()},
        .examples = {{"Measure for calls with 1, 16 and 512 tokens, and write the fastest model",
                      "twinkle tune model.pt --inputs inputs.pt --tune-sizes 1,16,512 -o tuned.pt"},
                     {"For the calls that a server got (TWINKLE_RECORD=calls.jsonl)",
                      "twinkle tune model.pt --from calls.jsonl -o tuned.pt"},
                     {"The third of eight machines, which share a record",
                      "twinkle tune model.pt --from calls.jsonl --shard 3/8"},
                     {"What was measured on this machine", "twinkle tune show"},
                     {"One file of what several machines have measured",
                      "twinkle tune merge node1.json node2.json -o tuned.json"},
                     {"On a machine that has not measured", "twinkle tune import tuned.json"}},
        .run = run_tune};
}

}  // namespace twinkle::cli
