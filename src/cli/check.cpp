// twinkle check: a kernel against the rules of the Hub.

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/file.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/check_model.h"
#include "cli/check_package.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/hub_session.h"
#include "cli/kernelize_options.h"
#include "cli/output_file.h"
#include "cli/sarif.h"
#include "operations/check_kernel.h"

namespace twinkle::cli {
namespace {

using base::Json;
using kernel::Finding;
using kernel::Severity;

std::string remedy_of(const Finding& finding) {
    return finding.remedy.empty() ? std::string(kernel::rule(finding.rule).remedy) : finding.remedy;
}

std::string place_of(const Finding& finding) {
    return finding.file + (finding.line > 0 ? ":" + std::to_string(finding.line) : "");
}

Json findings_json(const operations::CheckReport& report) {
    Json list = Json::array();
    for (const Finding& finding : report.findings) {
        list.push_back({{"rule", finding.rule},
                        {"severity", kernel::severity_name(finding.severity)},
                        {"text", base::printable(finding.text)},
                        {"file", finding.file.empty() ? Json() : Json(finding.file)},
                        {"line", finding.line > 0 ? Json(finding.line) : Json()},
                        {"remedy", remedy_of(finding)}});
    }
    return list;
}

void print(const operations::CheckReport& report, Console& console) {
    using base::Style;
    const bool color = console.result_color();
    std::string text;
    for (const Finding& finding : report.findings) {
        const Style style = finding.severity == Severity::error     ? Style::red
                            : finding.severity == Severity::warning ? Style::yellow
                                                                    : Style::plain;
        const std::string place = place_of(finding);
        text += base::styled(std::string(kernel::severity_name(finding.severity)), style, color) +
                " [" + std::string(finding.rule) + "] " +
                (place.empty() ? "" : base::printable(place) + ": ") +
                base::printable(finding.text) + "\n";
        if (finding.severity != Severity::note) {
            text += "    " + remedy_of(finding) + "\n";
        }
    }
    console.result(text);
}

std::size_t count(const operations::CheckReport& report, Severity severity) {
    return static_cast<std::size_t>(
        std::count_if(report.findings.begin(), report.findings.end(),
                      [&](const Finding& finding) { return finding.severity == severity; }));
}

std::optional<kernel::Audience> audience(const Arguments& arguments) {
    const auto text = arguments.text("for");
    return !text ? std::nullopt
                 : std::optional(*text == "hub" ? kernel::Audience::hub : kernel::Audience::here);
}

// Counts the places of a model where a kernel fits: several layers may be bound to one class, and
// each is reported once for every reason that keeps some.
class FitCount {
public:
    void add(const LayerFit& fit) {
        auto& [fits, sites] = places_[fit.model_class];
        fits = std::max(fits, fit.fits);
        sites = std::max(sites, fit.sites);
    }
    std::string text() const {
        std::size_t fits = 0, sites = 0;
        for (const auto& [place, counts] : places_) {
            fits += counts.first;
            sites += counts.second;
        }
        return sites == 0 ? "no class or call of the model is one that this kernel stands for"
                          : "fits " + std::to_string(fits) + " of " + std::to_string(sites) +
                                " places in the model that it could take";
    }

private:
    std::map<std::string, std::pair<std::size_t, std::size_t>> places_;  // by class or function
};

bool is_violation(const LayerFit& fit) {
    return !fit.by_name && !fit.as_asked && !fit.model_class.empty();
}

// Adds layers and functions that do not fit their binding as violations of their own.
Json add_model_fits(const std::string& kernel, const std::string& model, bool allow_io,
                    operations::CheckReport& report, Console& console) {
    Json fits = Json::array();
    FitCount all;
    for (const LayerFit& fit : check_model(kernel, model, allow_io, console)) {
        all.add(fit);
        const char* kind = fit.is_function ? "function" : "layer";
        fits.push_back({{"kind", kind},
                        {kind, fit.layer},
                        {fit.is_function ? "of" : "class",
                         fit.model_class.empty() ? Json() : Json(fit.model_class)},
                        {"by_name", fit.by_name},
                        {"sites", fit.sites},
                        {"fits", fit.fits},
                        {"because", fit.because},
                        {"example", fit.example}});
        if (!fit.is_function) {
            fits.back()["lost"] = fit.lost;
        }
        if (fit.because.empty()) {
            continue;
        }
        const auto colon = fit.where.rfind(':');
        const std::string text = std::string("the ") + kind + " " + fit.layer + " fits " +
                                 std::to_string(fit.fits) + " of " + std::to_string(fit.sites) +
                                 (fit.is_function ? " calls of " : " instances of ") +
                                 fit.model_class + ": " + fit.because;
        report.findings.push_back(
            {fit.is_function ? "function/model" : "layer/model",
             is_violation(fit) ? Severity::error : Severity::note, text, fit.where.substr(0, colon),
             colon == std::string::npos ? 0 : std::atoi(fit.where.c_str() + colon + 1)});
    }
    console.note(all.text());
    return fits;
}

void require_without(const Arguments& arguments, const std::vector<std::string>& options,
                     const std::string& of) {
    for (const std::string& option : options) {
        if (arguments.text(option)) {
            throw Error(ErrorCode::malformed, {.what = "--" + option + " says nothing here",
                                               .where = *arguments.text("PATH"),
                                               .why = "it is for " + of,
                                               .hint = "leave it out"});
        }
    }
}

int run_check(const Arguments& arguments, Console& console) {
    const std::string path = *arguments.text("PATH");
    if (std::filesystem::is_regular_file(path)) {
        require_without(arguments, {"model", "sarif", "for"}, "kernels");
        return check_package(path, arguments.text("target"), console);
    }
    require_without(arguments, {"target"}, "compiled packages");
    const auto file = arguments.text("sarif");
    if (file == "-") {
        throw Error(ErrorCode::malformed, {.what = "--sarif cannot be standard output",
                                           .where = {},
                                           .why = "the findings are printed there",
                                           .hint = "name a file, or use --json"});
    }
    if (file) {
        check_output(*file, OutputKind::text, {arguments.text("model").value_or("")});
    }
    auto report = operations::check_kernel(path, audience(arguments));
    Json fits;
    if (const auto model = arguments.text("model")) {
        fits = add_model_fits(path, *model, arguments.flag("allow-io"), report, console);
    }
    if (file) {
        base::write_file_atomically(*file, sarif(report, path).dump(2) + "\n");
    }
    if (report.for_this_machine_only && !arguments.text("for")) {
        console.note(
            "a build that does not say who built it is judged for this machine alone; --for hub "
            "judges it for all");
    }
    if (console.json()) {
        Json result{{"path", path},
                    {"builds", report.builds},
                    {"project", report.project},
                    {"violations", count(report, Severity::error)},
                    {"findings", findings_json(report)}};
        if (!fits.is_null()) {
            result["model"] = fits;
        }
        console.result("check", std::move(result));
    } else {
        print(report, console);
    }
    if (report.violated()) {
        throw Error(ErrorCode::verification,
                    {.what = "the kernel breaks rules",
                     .where = path,
                     .why = base::counted(count(report, Severity::error), "violation") + ", " +
                            base::counted(count(report, Severity::warning), "warning"),
                     .hint = "each is listed with what to do"});
    }
    console.note("no violations, " + base::counted(count(report, Severity::warning), "warning"));
    return 0;
}

}  // namespace

Command check_command() {
    return {
        .name = "check",
        .summary = "Check a kernel against the rules of the Hub",
        .description =
            "Holds a build, a repository of builds or a source project (build.toml) against what "
            "the Hub asks of kernels: metadata, digest, GPU architectures, symbols, needed "
            "libraries, imports and layers. Nothing of the kernel is loaded. Every violation is "
            "shown with its rule and a remedy; exit status 4 if there is one.\n\n"
            "Libraries are judged by manylinux_2_28. A build whose metadata does not say who built "
            "it is taken to be for this machine alone: newer symbols that this machine has are "
            "only noted.\n\n"
            "A package that AOTInductor compiled (.pt2) is held against this machine, or a target: "
            "its device, instruction sets and GPU, and who has the operators that it calls. "
            "Nothing of it is loaded.",
        .arguments = {{.name = "PATH",
                       .help = "A build, a folder with build/<variant>/, a source project, or a "
                               "compiled package",
                       .kind = ValueKind::folder}},
        .options = {{.names = "--model",
                     .value = "MODEL",
                     .help = "Check layers and functions against this model, too",
                     .kind = ValueKind::file},
                    allow_io_option(),
                    target_option(false),
                    {.names = "--sarif",
                     .value = "FILE",
                     .help = "Write the findings as SARIF 2.1.0, too",
                     .kind = ValueKind::file},
                    {.names = "--for",
                     .value = "WHOM",
                     .help = "hub: for every machine; here: for this one alone",
                     .kind = ValueKind::choice,
                     .choices = {"hub", "here"},
                     .restricted = true}},
        .examples = {{"What keeps a build from the Hub", "twinkle check result --for hub"},
                     {"In CI, with findings beside the source",
                      "twinkle check . --sarif twinkle.sarif"},
                     {"Do the layers fit my model?", "twinkle check build --model model.pt"},
                     {"Does a compiled package run here?", "twinkle check model.pt2"}},
        .run = run_check};
}

}  // namespace twinkle::cli
