#include "cli/verification_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/number.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/measured_text.h"
#include "cli/precision_options.h"
#include "cli/report_parts.h"
#include "twinkle/error.h"

namespace twinkle::cli {
namespace {

constexpr double least_tolerance = 1e-3;
constexpr double most_tolerance = 1e9;
constexpr double least_budget = 1e-3;  // seconds
constexpr double most_budget = 24 * 3600;
constexpr const char* how_to_give = "--inputs FILE, or --inputs \"int64[1,128]:0..32000\"";

void demand(bool holds, const std::string& what, const std::string& hint) {
    if (!holds) {
        throw Error(ErrorCode::malformed, {.what = what, .where = {}, .why = {}, .hint = hint});
    }
}

double checked_tolerance(const std::string& text) {
    const auto factor = base::parse_number<double>(text);
    if (!factor || !(*factor >= least_tolerance && *factor <= most_tolerance)) {
        throw Error(ErrorCode::malformed,
                    {.what = "--tolerance cannot be '" + text + "'",
                     .where = {},
                     .why = "every allowed error is multiplied by it: 2, 1.5, 100",
                     .hint = {}});
    }
    return *factor;
}

double checked_budget(std::string text) {
    const std::string given = text;
    if (text.ends_with('s')) {
        text.pop_back();
    }
    double seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size() ||
        !(seconds >= least_budget && seconds <= most_budget)) {
        throw Error(ErrorCode::malformed, {.what = "--budget cannot be '" + given + "'",
                                           .where = {},
                                           .why = "it is a number of seconds, up to a day: 60, 2.5",
                                           .hint = {}});
    }
    return seconds;
}

std::vector<std::int64_t> checked_sizes(const std::string& text) {
    constexpr std::size_t most_sizes = 16;
    constexpr std::int64_t largest = std::int64_t{1} << 24;
    std::vector<std::int64_t> sizes;
    for (const std::string& word : base::split(text, ',')) {
        const auto size = base::parse_number<std::int64_t>(word);
        sizes.push_back(size && *size <= largest ? *size : 0);
    }
    const bool wrong = std::ranges::any_of(sizes, [](std::int64_t size) { return size < 1; });
    if (wrong || sizes.empty() || sizes.size() > most_sizes) {
        throw Error(ErrorCode::malformed,
                    {.what = "--tune-sizes cannot be '" + text + "'",
                     .where = {},
                     .why = fmt::format("it is a list of up to {} sizes: 1,16,512", most_sizes),
                     .hint = {}});
    }
    return sizes;
}

// "length 1, 2, 3, 7; batch 2, 3; batch 2 with length 3"
std::string sizes_text(const base::Json& shapes) {
    std::string text;
    std::string last;  // "length", until there is another
    std::set<std::string> said;
    for (const auto& one : shapes) {
        const auto size = shown_text(one, "size");
        const auto words = base::split(size, ' ');
        if (size.empty() || size == "given" || !said.insert(size).second) {
            continue;
        }
        const bool single = words.size() == 2;
        const bool again = single && words[0] == last;
        const auto comma = size.find(", ");
        text += text.empty() ? "" : again ? ", " : "; ";
        text += again ? words[1]
                : comma == std::string::npos
                    ? size
                    : size.substr(0, comma) + " with " + size.substr(comma + 2);
        last = single ? words[0] : "";
    }
    return text;
}

std::string given_inputs(const base::Json& shapes) {
    for (const auto& one : shapes) {
        if (shown_text(one, "size") == "given") {
            return shown_text(one, "inputs");
        }
    }
    return {};
}

std::string verified_on(const protocol::Request& request, const base::Json& report) {
    const auto& shapes = list_of(report, "shapes");
    const auto inputs = given_inputs(shapes);
    const auto sizes = sizes_text(shapes);
    const bool others_wanted = request.sizes;
    std::string text = "verified on the given inputs";
    text += inputs.empty() ? "" : " (" + inputs + ")";
    text += !sizes.empty()   ? ", and with " + sizes
            : !others_wanted ? ", and in no other size (--verify=given)"
            : count_of(report, "replaced") == 0
                ? ""
                : ", and in no other size: the original accepts none that was tried";
    const auto tolerance = number_of(report, "tolerance").value_or(1);
    return text + (tolerance == 1 ? "" : fmt::format("; {:g} times the error allowed", tolerance));
}

// "speed: 1.31x the original: 2.42 ms a run, before 3.17 ms (medians of 57 runs in turns, 2
// threads)".
std::string speed_line(const base::Json& report) {
    const auto& whole = object_of(report, "whole");
    const auto original = times_of(whole, "original_us");
    const auto kernelized = times_of(whole, "kernelized_us");
    const auto why = shown_text(whole, "not_measured");
    if (!original || !kernelized) {
        return why.empty() ? "" : "speed: not measured: " + why;
    }
    const auto dtype = shown_text(report, "dtype");
    return fmt::format("speed: {}{}: {} a run, before {} (medians of {} runs in turns, {}){}",
                       whole_speedup_text(whole), dtype.empty() ? "" : " in " + dtype,
                       time_text(kernelized->median), time_text(original->median),
                       count_in(whole, "runs"), base::counted(count_in(whole, "threads"), "thread"),
                       is_true(whole, "busy")
                           ? "; other programs keep this machine busy: measure again when it is "
                             "quiet"
                           : "");
}

std::string not_verified(const protocol::Request& request) {
    const std::string text = "not verified: nothing was compared with the original, nor measured; ";
    if (!request.load_kernels) {
        return text + "kernelize with inputs on the machine that the model is for";
    }
    return text + (!request.inputs ? std::string("give ") + how_to_give : "leave out --no-verify");
}

}  // namespace

Option verify_option() {
    return {.names = "--verify",
            .value = "SHAPES",
            .help =
                "Compare every replaced site, and the whole model, with the original: on the "
                "inputs, and with other batches and lengths (1, 2, 3, an odd one) where the "
                "original accepts them. What --inputs means anyway; --verify=given: on the "
                "inputs as they are alone",
            .kind = ValueKind::choice,
            .choices = {"given"},
            .restricted = true,
            .value_optional = true};
}

Option no_verify_option() {
    return {
        .names = "--no-verify",
        .value = "",
        .help = "Compare nothing: inputs then only show how to replace what a trace has inlined"};
}

Option tolerance_option() {
    return {.names = "--tolerance",
            .value = "FACTOR",
            .help =
                "Multiply every allowed error by this: that of each site, and of the whole model "
                "(default: 1). For kernels that are known to be coarser than the original"};
}

Option tune_option() {
    return {.names = "--tune",
            .value = "",
            .help =
                "Measure every candidate of every site beside the original, on the inputs and in "
                "other sizes of them, and let each call get what is fastest for its size; the "
                "original where none is surely faster"};
}

Option budget_option() {
    return {.names = "--budget",
            .value = "SECONDS",
            .help = "How long --tune measures, about (default: 20): 60, 2.5, 60s"};
}

Option no_measure_option() {
    return {.names = "--no-measure",
            .value = "",
            .help =
                "Do not measure how much faster the whole model is: a second or two, or a few "
                "runs of a slow model"};
}

Option tune_sizes_option() {
    return {.names = "--tune-sizes",
            .value = "SIZES",
            .help =
                "Beside the given inputs, measure with these lengths, or batches where the model "
                "takes no other length (default: powers of four below the given one): 1,16,512"};
}

void add_tuning_limits(protocol::Request& request, const Arguments& arguments) {
    if (const auto budget = arguments.text("budget")) {
        request.duration = checked_budget(*budget);
    }
    if (const auto sizes = arguments.text("tune-sizes")) {
        request.tune_sizes = checked_sizes(*sizes);
    }
}

namespace {

void add_tuning(protocol::Request& request, const Arguments& arguments) {
    request.tune = arguments.flag("tune");
    demand(!request.tune || request.verify,
           "--tune measures what is right, and nothing is compared here",
           std::string("add ") + how_to_give + ", and leave out --no-verify and --target");
    for (const std::string option : {"budget", "tune-sizes"}) {
        demand(!arguments.text(option) || request.tune,
               "--" + option + " is of no use where nothing is measured",
               "add --tune, or leave out --" + option);
    }
    add_tuning_limits(request, arguments);
}

}  // namespace

void add_verification(protocol::Request& request, const Arguments& arguments) {
    const bool asked = arguments.flag("verify");
    const bool inputs = arguments.flag("inputs");
    const bool target = arguments.flag("target");
    demand(!asked || inputs, "--verify needs inputs", std::string("add ") + how_to_give);
    demand(!asked || !target, "--verify runs the kernels, and --target loads none",
           "verify on the machine that the model is for: twinkle bench, or kernelize there");
    demand(!asked || !arguments.flag("no-verify"), "--verify and --no-verify exclude each other",
           "leave out one of them");
    request.verify = inputs && !target && !arguments.flag("no-verify");
    request.sizes = arguments.text("verify") != "given";
    request.measure = request.verify && !arguments.flag("no-measure");
    if (const auto tolerance = arguments.text("tolerance")) {
        request.tolerance = checked_tolerance(*tolerance);
        demand(request.verify, "--tolerance is of no use where nothing is compared",
               std::string("add ") + how_to_give + ", or leave out --tolerance");
    }
    add_tuning(request, arguments);
}

std::string verification_text(const protocol::Request& request, const base::Json& report,
                              std::size_t columns) {
    const bool verified = is_true(report, "verified");
    std::string text;
    for (const auto& line : {verified ? speed_line(report) : "", precision_line(report),
                             verified ? verified_on(request, report) : not_verified(request)}) {
        text += line.empty() ? "" : (columns == 0 ? line : base::wrap(line, columns, 0)) + "\n";
    }
    return text;
}

}  // namespace twinkle::cli
