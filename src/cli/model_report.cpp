#include "cli/model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/quantity.h"
#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/report_parts.h"
#include "project/new_manifest.h"

namespace twinkle::cli {
namespace {

using base::Json;
using base::Style;
using base::Table;

std::string count_text(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number_unsigned()
               ? std::to_string(found->get<std::uint64_t>())
               : std::string();
}

std::string section(const std::string& title, const Table& table, std::size_t columns, bool color) {
    return table.empty() ? ""
                         : "\n" + base::styled(title, Style::bold, color) + "\n" +
                               table.render(columns, color);
}

// The kernel of a class in a few words: "twinkle-pack: RMSNorm", "preset: RMSNorm", or why not.
Table::Cell binding_cell(const Json& binding) {
    const auto kernel = shown_text(binding, "kernel");
    const auto layers = joined_texts(list_of(binding, "layers"));
    const auto by = shown_text(binding, "by");
    const auto& kept = list_of(binding, "kept");
    const auto fits = count_in(binding, "fits");
    if (by == "preset") {
        return {layers + ", with the preset", Style::yellow};
    }
    if (fits == 0 && !kept.empty()) {
        return {
            (kernel.empty() ? layers : kernel) + " does not fit: " + shown_text(kept[0], "because"),
            Style::yellow};
    }
    std::string text = kernel.empty() ? layers : kernel;
    if (fits < count_in(binding, "sites")) {
        text += fmt::format(" ({} of {})", fits, count_in(binding, "sites"));
    }
    return by == "name" ? Table::Cell(text + " has its name", Style::yellow)
                        : Table::Cell(text, Style::green);
}

// Returns the cells by class or function.
std::map<std::string, Table::Cell> kernel_cells(const Json& inspection) {
    std::map<std::string, Table::Cell> kernels;
    for (const auto& binding : list_of(inspection, "bindings")) {
        kernels.emplace(shown_text(binding, "class"), binding_cell(binding));
    }
    return kernels;
}

std::string class_section(const Json& inspection, std::size_t columns, bool color) {
    const auto kernels = kernel_cells(inspection);
    Table table({{"class", Table::Align::left, Table::Fit::tail},
                 {"count", Table::Align::right},
                 {"example", Table::Align::left, Table::Fit::tail},
                 {"kernel", Table::Align::left, Table::Fit::wrap}});
    for (const auto& one : list_of(inspection, "classes")) {
        const auto name = shown_text(one, "name");
        const auto instances = count_text(one, "instances");
        const auto found = kernels.find(name);
        table.add({{name},
                   {instances.empty() ? count_text(one, "types") : instances},
                   {shown_text(one, "example")},
                   found == kernels.end() ? Table::Cell("") : found->second});
    }
    return section("classes", table, columns, color);
}

// What is found by its formula, and is in no other table.
std::string formula_section(const Json& inspection, std::size_t columns, bool color) {
    Table table({{"formula", Table::Align::left, Table::Fit::tail},
                 {"sites", Table::Align::right},
                 {"kernel", Table::Align::left, Table::Fit::wrap}});
    for (const auto& binding : list_of(inspection, "bindings")) {
        if (shown_text(binding, "kind") == "pattern") {
            table.add({{shown_text(binding, "class")},
                       {count_text(binding, "sites")},
                       binding_cell(binding)});
        }
    }
    return section("formulas", table, columns, color);
}

// Names those of a binding that come from there: "eps, dim".
std::string attributes_from(const Json& binding, std::string_view from) {
    std::vector<std::string> names;
    for (const auto& attribute : list_of(binding, "attributes")) {
        if (shown_text(attribute, "from") == from) {
            names.push_back(shown_text(attribute, "name"));
        }
    }
    return base::join(names, ", ");
}

// Attributes that a kernel's layer reads and the saved model does not have.
std::string missing_attributes(const Json& inspection) {
    std::string text;
    for (const auto& binding : list_of(inspection, "bindings")) {
        const auto say = [&](std::string_view from, std::string_view form) {
            if (const auto names = attributes_from(binding, from); !names.empty()) {
                text += fmt::format(fmt::runtime(form), shown_text(binding, "class"), names,
                                    shown_text(binding, "kernel"));
            }
        };
        say("lost", "{} has lost {}, which {} reads: supply it with attributes = {{ … }}\n");
        say("nowhere",
            "{} has no {}, a tensor or module that {} reads: bind other classes to it\n");
    }
    return text;
}

std::string detail_section(const Json& inspection, std::size_t columns, bool color) {
    Table methods({{"class", Table::Align::left, Table::Fit::tail},
                   {"method", Table::Align::left, Table::Fit::wrap}});
    Table attributes({{"class", Table::Align::left, Table::Fit::tail},
                      {"attribute"},
                      {"type"},
                      {"value", Table::Align::left, Table::Fit::head},
                      {"from"}});
    for (const auto& one : list_of(inspection, "classes")) {
        for (const auto& method : list_of(one, "methods")) {
            methods.add({{shown_text(one, "name")}, {shown_text(method, "signature")}});
        }
        for (const auto& attribute : list_of(one, "attributes")) {
            attributes.add({{shown_text(one, "name")},
                            {shown_text(attribute, "name")},
                            {shown_text(attribute, "type")},
                            {shown_text(attribute, "value")},
                            {shown_text(attribute, "from")}});
        }
    }
    return section("methods", methods, columns, color) +
           section("attributes", attributes, columns, color);
}

std::string function_sections(const Json& inspection, std::size_t columns, bool color) {
    const auto kernels = kernel_cells(inspection);
    Table functions({{"function", Table::Align::left, Table::Fit::tail},
                     {"calls", Table::Align::right},
                     {"signature", Table::Align::left, Table::Fit::wrap},
                     {"kernel", Table::Align::left, Table::Fit::wrap}});
    for (const auto& one : list_of(inspection, "functions")) {
        const auto found = kernels.find(shown_text(one, "name"));
        functions.add({{shown_text(one, "name")},
                       {count_text(one, "calls")},
                       {shown_text(one, "signature")},
                       found == kernels.end() ? Table::Cell("") : found->second});
    }
    Table traced({{"function"},
                  {"calls", Table::Align::right},
                  {"file", Table::Align::left, Table::Fit::tail},
                  {"in", Table::Align::left, Table::Fit::wrap}});
    for (const auto& one : list_of(inspection, "traced_functions")) {
        traced.add({{shown_text(one, "name")},
                    {count_text(one, "calls")},
                    {shown_text(one, "file")},
                    {joined_texts(list_of(one, "classes"))}});
    }
    return section("functions", functions, columns, color) +
           section("functions that were traced through", traced, columns, color);
}

std::string need_sections(const Json& inspection, std::size_t columns, bool color) {
    Table operators({{"operator"},
                     {"calls", Table::Align::right},
                     {"from", Table::Align::left, Table::Fit::tail},
                     {"because", Table::Align::left, Table::Fit::wrap}});
    for (const auto& one : list_of(inspection, "operators")) {
        const auto from = shown_text(one, "from");
        operators.add({{shown_text(one, "name")},
                       {count_text(one, "calls")},
                       {from.empty() ? "nowhere" : from, from.empty() ? Style::red : Style::green},
                       {shown_text(one, "because")}});
    }
    Table kernels({{"kernel"},
                   {"variant"},
                   {"build"},
                   {"found", Table::Align::left, Table::Fit::tail},
                   {"because", Table::Align::left, Table::Fit::wrap}});
    for (const auto& one : list_of(inspection, "kernels")) {
        const auto path = shown_text(one, "path");
        kernels.add({{shown_text(one, "name")},
                     {shown_text(one, "variant")},
                     {shown_text(one, "build").substr(0, 12)},
                     {path.empty() ? "no" : path, path.empty() ? Style::red : Style::green},
                     {shown_text(one, "because")}});
    }
    Table io({{"operator"}, {"what it does", Table::Align::left, Table::Fit::wrap}});
    for (const auto& one : list_of(inspection, "io")) {
        io.add({{shown_text(one, "name"), Style::red}, {shown_text(one, "does")}});
    }
    return section("files, other processes and the network", io, columns, color) +
           section("operators that are not LibTorch's own", operators, columns, color) +
           section("kernels that the model names", kernels, columns, color);
}

// What an earlier kernelize has said of the sites it replaced.
std::string label_section(const Json& inspection, std::size_t columns, bool color) {
    Table labels({{"site", Table::Align::left, Table::Fit::tail},
                  {"kernel", Table::Align::left, Table::Fit::wrap},
                  {"because", Table::Align::left, Table::Fit::wrap}});
    for (const auto& one : list_of(inspection, "labels")) {
        std::vector<std::string> kernels;
        for (const auto& part : list_of(one, "serves")) {
            const auto kernel = shown_text(part, "kernel");
            kernels.push_back(kernel.empty() ? "the original" : kernel);
        }
        labels.add(
            {{shown_site(one)}, {base::join(kernels, " or ")}, {shown_text(one, "because")}});
    }
    return section("labels of replaced sites", labels, columns, color);
}

std::string facts(const Json& inspection) {
    auto text = fmt::format("{}: {} TorchScript model", shown_text(inspection, "file"),
                            shown_text(inspection, "kind"));
    const auto type = shown_text(inspection, "class");
    text += type.empty() ? "\n" : ", " + type + "\n";
    if (inspection.contains("parameters")) {
        text +=
            fmt::format("{} parameters, {} of tensors ({}){}\n", count_in(inspection, "parameters"),
                        base::human_bytes(count_in(inspection, "tensor_bytes")),
                        joined_texts(list_of(inspection, "dtypes")),
                        is_true(inspection, "training") ? ", in training mode" : "");
    }
    if (is_true(inspection, "graphs")) {
        text += "marked: programs replay its runs as CUDA graphs where that is faster\n";
    }
    const auto because = shown_text(inspection, "because");
    if (!because.empty()) {
        text += "read without loading it, because " + because + "\n";
    }
    return text;
}

std::string next_steps(const Json& inspection) {
    std::string text;
    std::vector<project::FunctionFound> functions;
    for (const auto& binding : list_of(inspection, "bindings")) {
        const auto kernel = shown_text(binding, "kernel");
        if (shown_text(binding, "by") != "name" || count_in(binding, "fits") == 0) {
            continue;
        }
        if (shown_text(binding, "kind") == "function") {
            functions.push_back(
                {shown_text(binding, "class"), kernel, count_in(binding, "fits"), false});
        } else {
            text += fmt::format("[layers.{}]\nclasses = [\"{}\"]\n",
                                kernel.substr(kernel.rfind(' ') + 1), shown_text(binding, "class"));
        }
    }
    text += project::function_tables(functions);
    return text.empty()
               ? ""
               : "\nIf these are what their names say (kernelize --verify compares the values), "
                 "twinkle.toml may bind them:\n" +
                     text;
}

}  // namespace

std::string model_report(const Json& inspection, std::size_t columns, bool color, bool details) {
    std::string text = facts(inspection) + class_section(inspection, columns, color) +
                       formula_section(inspection, columns, color) + missing_attributes(inspection);
    if (details) {
        text += detail_section(inspection, columns, color);
    }
    text += function_sections(inspection, columns, color) +
            need_sections(inspection, columns, color) + label_section(inspection, columns, color);
    for (const auto& note : list_of(inspection, "binding_notes")) {
        if (!shown_text(inspection, "manifest").empty() && note.is_string()) {
            text += base::printable(note.get_ref<const std::string&>()) + "\n";
        }
    }
    return text + next_steps(inspection);
}

}  // namespace twinkle::cli
