#include "cli/precision_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/report_parts.h"
#include "kernel/precision.h"
#include "twinkle/error.h"

namespace twinkle::cli {
namespace {

void demand(bool holds, const std::string& what, const std::string& hint) {
    if (!holds) {
        throw Error(ErrorCode::malformed, {.what = what, .where = {}, .why = {}, .hint = hint});
    }
}

// A number between 0 and 1.
double checked_share(const std::string& option, const std::string& text, const std::string& what) {
    const auto value = base::parse_number<double>(text);
    if (!value || !(*value > 0 && *value <= 1)) {
        throw Error(
            ErrorCode::malformed,
            {.what = option + " cannot be '" + text + "'", .where = {}, .why = what, .hint = {}});
    }
    return *value;
}

std::vector<std::string> checked_precisions(const std::string& text) {
    std::vector<std::string> names;
    for (const std::string& name : base::split(text, ',')) {
        demand(kernel::is_precision(name), "--precision cannot be '" + text + "'",
               "it is a list of precisions that kernels offer: int8, or int8,int4");
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            names.push_back(name);
        }
    }
    return names;
}

std::string layers_text(const base::Json& precision) {
    std::vector<std::string> parts;
    std::size_t sum = 0;
    for (const auto& [name, count] : object_of(precision, "sites").items()) {
        if (count.is_number_unsigned() || count.is_number_integer()) {
            parts.push_back(
                fmt::format("{} in {}", base::printable(name), count.get<std::size_t>()));
            sum += count.get<std::size_t>();
        }
    }
    const auto all = std::max(count_in(precision, "candidates"), sum);
    return (parts.empty() ? "none" : base::join(parts, ", ")) + fmt::format(" of {} layers", all);
}

}  // namespace

Option precision_option() {
    return {.names = "--precision",
            .value = "LIST",
            .help =
                "Let layers compute with fewer bits, where kernels offer that: int8, or int8,int4; "
                "as many as the error that --max-error names allows. Needs inputs like those that "
                "the model will get"};
}

Option max_error_option() {
    return {.names = "--max-error",
            .value = "ERROR",
            .help =
                "With --precision: the error that the model's results may have, as a relative "
                "Euclidean distance from a double-precision run of the original, on all inputs: "
                "0.02"};
}

Option agree_option() {
    return {.names = "--agree",
            .value = "SHARE",
            .help =
                "With --precision: the share of rows of the results whose largest value must be "
                "where the original has it: 0.99"};
}

void add_precision(protocol::Request& request, const Arguments& arguments) {
    const auto precision = arguments.text("precision");
    const auto error = arguments.text("max-error");
    const auto agree = arguments.text("agree");
    if (!precision) {
        demand(!error && !agree, "--max-error and --agree limit what --precision may do",
               "add --precision int8, or leave them out");
        return;
    }
    demand(error.has_value(), "--precision needs the error that the model may have",
           "add --max-error 0.02: two per cent of its results' Euclidean norm");
    demand(request.verify, "--precision measures errors, for which it needs inputs",
           "add --inputs FILE, with inputs like those that the model will get, on the machine that "
           "it is for");
    demand(!arguments.flag("tune"), "--precision and --tune exclude each other",
           "kernelize with --precision, and tune the result: twinkle tune MODEL");
    const std::string mode = arguments.text("mode").value_or("inference");
    demand(!mode.starts_with("training"), "--precision is for inference",
           "training keeps what is exact: leave out one of --precision and --mode");
    request.precisions = checked_precisions(*precision);
    request.max_error = checked_share("--max-error", *error,
                                      "it is a relative error between 0 and 1, such as 0.02");
    if (agree) {
        request.agree =
            checked_share("--agree", *agree, "it is a share between 0 and 1, such as 0.99");
    }
}

std::string precision_line(const base::Json& report) {
    const auto& precision = object_of(report, "precision");
    if (precision.empty()) {
        return "";
    }
    const auto& whole = object_of(report, "whole");
    std::string text = "precision: " + layers_text(precision);
    if (!object_of(precision, "sites").empty()) {
        text += fmt::format(", error {} of {:g} allowed", error_text(number_of(whole, "max_error")),
                            number_of(precision, "max_error").value_or(0));
        if (const auto agreement = number_of(whole, "agreement")) {
            text += fmt::format(", {:.2f} % of the largest values in place", 100 * *agreement);
        }
        text += fmt::format("; weights {}, before {}",
                            base::human_bytes(count_in(precision, "weights_bytes")),
                            base::human_bytes(count_in(precision, "original_bytes")));
    }
    return text;
}

}  // namespace twinkle::cli
