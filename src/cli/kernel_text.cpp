#include "cli/kernel_text.h"

#include <algorithm>

#include "base/text.h"
#include "cli/fact_printer.h"
#include "cli/library_text.h"

namespace twinkle::cli {
namespace {

using base::Json;
using kernel::Parameter;
using kernel::ParameterKind;
using Fit = base::Table::Fit;
using Align = base::Table::Align;

std::string signature(const std::string& name, const std::vector<Parameter>& parameters,
                      const std::string& returns) {
    std::vector<std::string> parts;
    bool keywords = false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Parameter& one = parameters[i];
        const bool variadic = one.kind == ParameterKind::var_positional;
        if (one.kind == ParameterKind::keyword_only && !keywords) {
            parts.emplace_back("*");
        }
        keywords = keywords || variadic || one.kind == ParameterKind::keyword_only;
        std::string text = variadic ? "*" : one.kind == ParameterKind::var_keyword ? "**" : "";
        text += one.name + (one.annotation.empty() ? "" : ": " + one.annotation);
        text += one.has_default ? (one.annotation.empty() ? "=" : " = ") + one.default_text : "";
        parts.push_back(std::move(text));
        if (one.kind == ParameterKind::positional_only &&
            (i + 1 == parameters.size() ||
             parameters[i + 1].kind != ParameterKind::positional_only)) {
            parts.emplace_back("/");
        }
    }
    return name + "(" + base::join(parts, ", ") + ")" + (returns.empty() ? "" : " -> " + returns);
}

base::Style style_of(const kernel::Verdict& verdict) {
    const bool usable = verdict.usable == kernel::Usability::without_python ||
                        verdict.usable == kernel::Usability::with_stub;
    return usable ? base::Style::green : base::Style::yellow;
}

std::string yes(bool value) {
    return value ? "yes" : "no";
}

// The first reason, and how many follow it.
std::string because(const kernel::Verdict& verdict) {
    if (verdict.reasons.empty()) {
        return "";
    }
    const std::size_t more = verdict.reasons.size() - 1;
    const kernel::Reason& first = verdict.reasons.front();
    return (first.certain ? "" : "perhaps: ") + first.message() +
           (more > 0 ? " (and " + std::to_string(more) + " more)" : "");
}

void print_layers(const kernel::Inspection& inspection, FactPrinter& printer) {
    base::Table table({{"layer", Align::left, Fit::wrap},
                       {"backward"},
                       {"compile"},
                       {"reads of its host", Align::left, Fit::wrap},
                       {"operators", Align::left, Fit::wrap},
                       {"usable"},
                       {"because", Align::left, Fit::wrap}});
    for (const auto& [layer, verdict] : inspection.layers) {
        const std::vector<std::string> operators(layer.usage.operators.begin(),
                                                 layer.usage.operators.end());
        table.add({{signature(layer.name, layer.parameters, layer.returns)},
                   {yes(layer.has_backward)},
                   {yes(layer.can_torch_compile)},
                   {base::join(layer.host_attributes, ", ")},
                   {base::join(operators, ", ")},
                   {std::string(kernel::usability_name(verdict.usable)), style_of(verdict)},
                   {because(verdict)}});
    }
    printer.table("Layers", table);
}

void print_functions(const kernel::Inspection& inspection, FactPrinter& printer) {
    base::Table table({{"function", Align::left, Fit::wrap},
                       {"at", Align::left, Fit::wrap},
                       {"usable"},
                       {"because", Align::left, Fit::wrap}});
    for (const auto& [function, verdict] : inspection.functions) {
        table.add({{signature(function.name, function.parameters, function.returns)},
                   {function.file + ":" + std::to_string(function.line)},
                   {std::string(kernel::usability_name(verdict.usable)), style_of(verdict)},
                   {because(verdict)}});
    }
    printer.table("Functions", table);
}

std::string keys_heading(const kernel::Inspection& inspection) {
    const bool certain = std::all_of(inspection.operators.begin(), inspection.operators.end(),
                                     [](const auto& op) { return op.keys_are_certain; });
    return certain ? "dispatch keys" : "for some of the keys";
}

void print_operators(const kernel::Inspection& inspection, FactPrinter& printer) {
    base::Table table({{"operator", Align::left, Fit::wrap},
                       {"mutates", Align::left, Fit::wrap},
                       {keys_heading(inspection), Align::left, Fit::wrap}});
    for (const auto& op : inspection.operators) {
        table.add({{op.schema + (op.schema_is_certain ? "" : " (part of a longer text)")},
                   {base::join(op.mutates, ", ")},
                   {base::join(op.keys, ", ")}});
    }
    printer.table("Operators", table);
    if (!inspection.operators_complete) {
        if (table.empty()) {
            printer.heading("Operators");
        }
        printer.line("perhaps more",
                     "a schema that the compiler has split is not found; --load tells");
    }
}

// "threads 128 256 512; rows_per_block 1 2"
std::string arguments_text(const tuning::Tunable& tunable) {
    std::vector<std::string> all;
    for (const auto& argument : tunable.arguments) {
        std::string text = argument.name;
        for (const Json& value : argument.values) {
            text += " " + (value.is_string() ? value.get<std::string>() : base::json_line(value));
        }
        all.push_back(std::move(text));
    }
    return base::join(all, "; ");
}

void print_tuning(const operations::KernelView& view, FactPrinter& printer) {
    base::Table table({{"tunable", Align::left, Fit::wrap},
                       {"direction"},
                       {"arguments", Align::left, Fit::wrap},
                       {"by", Align::left, Fit::wrap}});
    for (const auto& tuned :
         view.tuning ? view.tuning->operators : std::vector<tuning::OperatorTuning>()) {
        std::vector<std::string> properties;
        for (const auto& [name, bucketing] : tuned.properties) {
            properties.push_back(name + " (" + bucketing.text() + ")");
        }
        for (const auto& [direction, tunable] :
             {std::pair("forward", &tuned.forward), std::pair("backward", &tuned.backward)}) {
            if (*tunable) {
                table.add({{tuned.name},
                           {direction},
                           {arguments_text(**tunable)},
                           {base::join(properties, ", ")}});
            }
        }
    }
    printer.table("Tuning", table);
}

}  // namespace

void print_kernel(const operations::KernelView& view, bool symbols, Console& console) {
    const kernel::Inspection& inspection = view.inspection;
    FactPrinter printer(console);
    const auto& metadata = inspection.build.metadata;
    printer.heading(metadata ? metadata->name : inspection.build.path.filename().string());
    printer.line("build", view.variant);
    printer.line("operator namespace", metadata ? metadata->id : "");
    printer.line("GPU architectures", base::join(inspection.archs, ", "));
    printer.line("declared", metadata ? base::join(metadata->archs, ", ") : "");
    print_layers(inspection, printer);
    print_functions(inspection, printer);
    print_operators(inspection, printer);
    print_tuning(view, printer);
    for (const auto& library : inspection.build.libraries) {
        print_library(library.path, library.library, symbols, printer);
    }
    for (const auto& problem : inspection.problems) {
        console.warn(problem.message());
    }
}

}  // namespace twinkle::cli
