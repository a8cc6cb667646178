#include "cli/tune_record.h"

#include <algorithm>

#include "base/file.h"
#include "base/number.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/measured_text.h"
#include "cli/model_request.h"
#include "cli/report_parts.h"
#include "cli/verification_options.h"

namespace twinkle::cli {
namespace {

using base::Json;
using tuning::Record;
using tuning::RecordedRun;

constexpr std::size_t most_runs = 100;  // each is run by the original, compared and measured

[[noreturn]] void unusable(const std::string& what, const std::string& file,
                           const std::string& hint) {
    throw Error(ErrorCode::malformed,
                {.what = what, .where = base::display_path(file), .why = "", .hint = hint});
}

Record record_of(const Arguments& arguments, Console& console) {
    const std::string file = *arguments.text("from");
    Record record = tuning::read_record(existing_file(file, "record"));
    if (record.unreadable > 0) {
        console.warn(base::display_path(file) + ": " + base::counted(record.unreadable, "line") +
                     " cannot be read");
    }
    return record;
}

// Returns those of the model that is meant.
std::vector<RecordedRun> runs_of(const Record& record, const Arguments& arguments) {
    const std::string file = *arguments.text("from");
    const auto models = record.models();
    const std::vector<std::string> names(models.begin(), models.end());
    const auto wanted = arguments.text("recorded");
    if (models.empty()) {
        unusable("no run of a kernelized model is recorded", file,
                 "`twinkle tune --from FILE` alone tunes the calls of operations");
    }
    if (!wanted && models.size() > 1) {
        unusable("runs of several models are recorded: " + base::join(names, ", "), file,
                 "name one of them: --recorded " + names.front());
    }
    if (wanted && !models.contains(*wanted)) {
        unusable("no run of a model " + base::printable(*wanted) + " is recorded, only of " +
                     base::join(names, ", "),
                 file, "");
    }
    std::vector<RecordedRun> runs = record.runs;
    std::erase_if(runs, [&](const RecordedRun& run) { return wanted && run.model != *wanted; });
    return runs;
}

// Where the shape of a tensor of a description ends.
std::size_t after_shape(const std::string& part) {
    return std::min(part.find(']'), part.size() - 1) + 1;
}

// "int64[1,8]:0..32000;(float32[2];int64[2]:0..7)" → {":0..32000", "", ":0..7"}
std::vector<std::string> ranges_of(const std::string& description) {
    std::vector<std::string> ranges;
    for (const std::string& part : base::split(description, ';')) {
        const std::string behind = part.empty() ? "" : part.substr(after_shape(part));
        ranges.push_back(behind.substr(0, behind.find_first_of(")]")));
    }
    return ranges;
}

// Tensors are counted through tuples and lists.
std::string with_ranges(const std::string& inputs, const std::vector<std::string>& ranges) {
    std::vector<std::string> parts = base::split(inputs, ';');
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const bool integers = parts[i].find("int") < parts[i].find(']');
        if (i < ranges.size() && integers) {
            parts[i].insert(after_shape(parts[i]), ranges[i]);
        }
    }
    return base::join(parts, ";");
}

}  // namespace

Option from_option() {
    return {.names = "--from",
            .value = "FILE",
            .help =
                "What a server has recorded (TWINKLE_RECORD=FILE): the sizes of its calls are "
                "measured; without MODEL the calls of operations",
            .kind = ValueKind::file};
}

Option recorded_option() {
    return {.names = "--recorded",
            .value = "CLASS",
            .help = "Which model of a record that has several, by the name of its class"};
}

Option shard_option() {
    return {.names = "--shard",
            .value = "I/N",
            .help =
                "Measure the I-th of N shares: N runs, on machines of one kind, need nothing of "
                "each other; merge what they export"};
}

tuning::Shard checked_shard(const Arguments& arguments) {
    constexpr std::uint64_t most = 100'000;
    const auto text = arguments.text("shard");
    if (!text) {
        return {};
    }
    const auto parts = base::split(*text, '/');
    const auto number =
        base::parse_number<std::uint64_t>(parts.size() == 2 ? parts[0] : std::string());
    const auto of = base::parse_number<std::uint64_t>(parts.size() == 2 ? parts[1] : std::string());
    if (!number || !of || *number < 1 || *number > *of || *of > most) {
        throw Error(ErrorCode::malformed, {.what = "--shard cannot be '" + *text + "'",
                                           .where = "",
                                           .why = "the first of eight is 1/8, the last 8/8",
                                           .hint = ""});
    }
    return {*number, *of};
}

void add_recorded_runs(protocol::Request& request, const Arguments& arguments, Console& console) {
    const Record record = record_of(arguments, console);
    const auto ranges = request.inputs ? ranges_of(*request.inputs) : std::vector<std::string>();
    std::vector<std::string> inputs;
    for (const RecordedRun& run : runs_of(record, arguments)) {
        request.recorded_model = run.model;
        if (!run.unfit.empty()) {
            console.warn("a call of " + run.model + " cannot be repeated: " + run.unfit);
        } else {
            inputs.push_back(with_ranges(run.inputs, ranges));
        }
    }
    if (inputs.empty() && !request.inputs) {
        unusable("no call of the model can be repeated", *arguments.text("from"),
                 "give inputs of it: --inputs FILE");
    }
    if (inputs.size() > most_runs) {
        console.warn("of " + base::counted(inputs.size(), "recorded call") + " the first " +
                     std::to_string(most_runs) + " are measured");
        inputs.resize(most_runs);
    }
    const bool given = request.inputs.has_value();
    if (!given) {
        request.inputs = inputs.front();
        request.inputs_recorded = true;
    }
    request.more_inputs.insert(request.more_inputs.end(), inputs.begin() + (given ? 0 : 1),
                               inputs.end());
}

int run_tune_operations(const Arguments& arguments, Console& console) {
    const Record record = record_of(arguments, console);
    const tuning::Shard shard = checked_shard(arguments);
    protocol::Request request;
    request.command = "tune-operations";
    for (const Invocation& invocation : record.invocations) {
        if (shard.has(invocation.hash())) {
            request.invocations.push_back(invocation.key());
        }
    }
    if (record.invocations.empty()) {
        unusable("no call of an operation is recorded", *arguments.text("from"),
                 record.runs.empty() ? "" : "name the model: twinkle tune MODEL --from FILE");
    }
    add_tuning_limits(request, arguments);
    auto report = run_worker(find_worker(console), request, console);
    if (console.json()) {
        console.result("tune", std::move(report));
        return 0;
    }
    base::Table table({{"operation", base::Table::Align::left, base::Table::Fit::wrap},
                       {"configuration", base::Table::Align::left, base::Table::Fit::wrap},
                       {"time", base::Table::Align::right},
                       {"is", base::Table::Align::left, base::Table::Fit::wrap}});
    for (const auto& one : list_of(report, "operations")) {
        table.add({{shown_text(one, "operation")},
                   {shown_text(one, "cfg")},
                   {time_text(number_of(one, "us"))},
                   {shown_text(one, "problem")}});
    }
    console.result(table);
    return 0;
}

}  // namespace twinkle::cli
