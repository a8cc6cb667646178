#include "cli/inspect_kernel.h"

#include <algorithm>

#include "base/text.h"
#include "binary/demangle.h"
#include "binary/limited_api.h"
#include "cli/json_fields.h"

namespace twinkle::cli {
namespace {

using base::Json;
using kernel::Parameter;
using kernel::ParameterKind;

const char* kind_name(ParameterKind kind) {
    switch (kind) {
        case ParameterKind::positional_only: return "positional-only";
        case ParameterKind::positional_or_keyword: return "positional-or-keyword";
        case ParameterKind::var_positional: return "var-positional";
        case ParameterKind::keyword_only: return "keyword-only";
        case ParameterKind::var_keyword: return "var-keyword";
    }
    return "";
}

Json parameters_json(const std::vector<Parameter>& parameters) {
    Json list = Json::array();
    for (const Parameter& parameter : parameters) {
        list.push_back(
            {{"name", parameter.name},
             {"kind", kind_name(parameter.kind)},
             {"annotation", text_or_null(parameter.annotation)},
             {"default", parameter.has_default ? Json(parameter.default_text) : Json()}});
    }
    return list;
}

void add_verdict(Json& json, const kernel::Verdict& verdict, const kernel::Usage& usage) {
    json["operators"] = usage.operators;
    json["foreign_operators"] = usage.foreign_operators;
    json["autograd_function"] = usage.applies_autograd_function;
    json["verdict"] = kernel::usability_name(verdict.usable);
    json["usable"] = verdict.usable == kernel::Usability::not_compiled
                         ? Json()
                         : Json(verdict.usable != kernel::Usability::needs_python);
    json["compiled_for"] = text_or_null(verdict.types);
    json["because"] = kernel::verdict_text(verdict);
    json["reasons"] = Json::array();
    for (const kernel::Reason& reason : verdict.reasons) {
        json["reasons"].push_back({{"kind", kernel::reason_name(reason.kind)},
                                   {"file", text_or_null(reason.file)},
                                   {"line", reason.line > 0 ? Json(reason.line) : Json()},
                                   {"text", reason.text},
                                   {"certain", reason.certain}});
    }
}

Json problems_json(const std::vector<kernel::Problem>& problems) {
    Json list = Json::array();
    for (const kernel::Problem& problem : problems) {
        list.push_back({{"file", problem.file}, {"line", problem.line}, {"text", problem.text}});
    }
    return list;
}

Json layer_json(const kernel::JudgedLayer& judged) {
    const kernel::LayerSource& layer = judged.layer;
    Json submodules = Json::array();
    for (const kernel::HostCall& call : layer.host_calls) {
        submodules.push_back(
            {{"path", call.path}, {"arguments", call.arguments}, {"line", call.line}});
    }
    Json json{{"name", layer.name},
              {"file", layer.file},
              {"line", layer.line},
              {"bases", layer.bases},
              {"has_backward", layer.has_backward},
              {"can_torch_compile", layer.can_torch_compile},
              {"parameters", parameters_json(layer.parameters)},
              {"returns", text_or_null(layer.returns)},
              {"needs", layer.host_attributes},
              {"writes", layer.host_writes},
              {"calls", submodules},
              {"problems", problems_json(layer.problems)}};
    add_verdict(json, judged.verdict, layer.usage);
    return json;
}

Json function_json(const kernel::JudgedFunction& judged) {
    const kernel::FunctionSource& function = judged.function;
    Json json{{"name", function.name},
              {"file", function.file},
              {"line", function.line},
              {"parameters", parameters_json(function.parameters)},
              {"returns", text_or_null(function.returns)},
              {"decorators", function.decorators}};
    add_verdict(json, judged.verdict, function.usage);
    return json;
}

Json operator_json(const kernel::OperatorFacts& op) {
    return {{"name", op.name},
            {"schema", op.schema},
            {"keys", op.keys},
            {"mutates", op.mutates},
            {"schema_certain", op.schema_is_certain},
            {"keys_certain", op.keys_are_certain}};
}

Json symbols_json(const binary::Library& library) {
    Json list = Json::array();
    for (const binary::Symbol& symbol : library.symbols.symbols) {
        list.push_back({{"name", base::printable(symbol.name)},
                        {"demangled", base::printable(binary::demangle(symbol.name))},
                        {"version", text_or_null(base::printable(symbol.version))},
                        {"default_version", symbol.default_version},
                        {"defined", symbol.defined},
                        {"weak", symbol.weak},
                        {"local", symbol.local}});
    }
    return list;
}

Json code_json(const binary::DeviceCodeList& code) {
    Json list = Json::array();
    for (const binary::DeviceCode& one : code.entries) {
        list.push_back({{"kind", binary::device_code_name(one.kind)},
                        {"arch", base::printable(one.arch)},
                        {"compressed", one.compressed},
                        {"relocatable", one.relocatable},
                        {"size", one.size}});
    }
    return list;
}

Json needs_json(const binary::Library& library) {
    Json list = Json::array();
    for (const std::string& name : library.needed) {
        list.push_back(base::printable(name));
    }
    return list;
}

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

class Printer {
public:
    explicit Printer(Console& console) : console_(console) {}

    void heading(const std::string& text) {
        console_.result(std::string(first_ ? "" : "\n") +
                        base::styled(text, base::Style::bold, console_.result_color()) + "\n");
        first_ = false;
    }
    void line(const std::string& name, const std::string& text) {
        if (!text.empty()) {
            console_.result("  " + name + ": " + base::printable(text) + "\n");
        }
    }
    void table(const std::string& title, const base::Table& table) {
        if (!table.empty()) {
            heading(title);
            console_.result(table);
        }
    }

private:
    Console& console_;
    bool first_ = true;
};

using Fit = base::Table::Fit;
using Align = base::Table::Align;

void print_layers(const kernel::Inspection& inspection, Printer& printer) {
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

void print_functions(const kernel::Inspection& inspection, Printer& printer) {
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

void print_operators(const kernel::Inspection& inspection, Printer& printer) {
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

Json tunable_json(const tuning::Tunable& tunable) {
    Json arguments = Json::object();
    for (const auto& argument : tunable.arguments) {
        arguments[base::printable(argument.name)] = argument.values;
    }
    Json defaults = Json::array();
    for (const auto& rule : tunable.defaults) {
        defaults.push_back(rule.cfg);
    }
    return {{"arguments", arguments},
            {"constraints", tunable.constraints.size()},
            {"defaults", defaults}};
}

Json tuning_json(const operations::KernelView& view) {
    Json list = Json::array();
    for (const auto& tuned :
         view.tuning ? view.tuning->operators : std::vector<tuning::OperatorTuning>()) {
        Json properties = Json::object();
        for (const auto& [name, bucketing] : tuned.properties) {
            properties[name] = bucketing.text();
        }
        list.push_back({{"operator", base::printable(tuned.name)},
                        {"properties", properties},
                        {"forward", tuned.forward ? tunable_json(*tuned.forward) : Json()},
                        {"backward", tuned.backward ? tunable_json(*tuned.backward) : Json()}});
    }
    return list;
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

void print_tuning(const operations::KernelView& view, Printer& printer) {
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

void print_library_facts(const std::string& path, const binary::Library& library,
                         Printer& printer) {
    printer.heading(base::printable(path));
    printer.line("for", library.machine + (library.readable ? "" : ", which is not read further"));
    printer.line("needs", base::join(library.needed, ", "));
    std::vector<std::string> versions;
    for (const auto& [kind, number] : library.newest_versions) {
        versions.push_back(kind + " " + number);
    }
    printer.line("newest versions needed", base::join(versions, ", "));
    printer.line("looks for libraries in",
                 base::join(library.rpath, ":") + base::join(library.runpath, ":"));
    if (!library.python_symbols.empty()) {
        bool limited = true;
        for (const auto& symbol : library.python_symbols) {
            limited = limited && binary::in_limited_api(symbol);
        }
        printer.line("symbols of Python", base::join(library.python_symbols, ", ") +
                                              (limited ? " (limited API 3.9)" : ""));
    }
    printer.line("binds at once", library.bind_now ? "yes" : "");
    printer.line("relocations in code", library.text_relocations ? "yes" : "");
    printer.line("runs code when loaded", library.has_initializers ? "yes" : "");
    printer.line("GPU architectures",
                 base::join(binary::runnable_archs(library.device_code.entries), ", ") +
                     (library.device_code.complete ? "" : ", and code that cannot be read"));
}

void print_symbols(const binary::Library& library, Printer& printer) {
    base::Table table({{"symbol", Align::left, Fit::wrap}, {"version"}, {"is"}});
    for (const binary::Symbol& symbol : library.symbols.symbols) {
        table.add({{binary::demangle(symbol.name)},
                   {std::string(symbol.version)},
                   {symbol.defined ? "exported"
                    : symbol.weak  ? "wanted"
                                   : "needed"}});
    }
    printer.table("Symbols", table);
}

}  // namespace

Json library_json(const std::string& path, const binary::Library& library, bool symbols) {
    Json needs = Json::array();
    for (const binary::VersionNeed& need : library.symbols.needs) {
        Json versions = Json::array();
        for (const auto& version : need.versions) versions.push_back(base::printable(version));
        needs.push_back({{"library", base::printable(need.library)}, {"versions", versions}});
    }
    Json sections = Json::array();
    for (const binary::SectionSize& section : library.sections) {
        sections.push_back({{"name", base::printable(section.name)}, {"size", section.size}});
    }
    bool limited = true;
    Json python = Json::array();
    for (const std::string& symbol : library.python_symbols) {
        limited = limited && binary::in_limited_api(symbol);
        python.push_back(base::printable(symbol));
    }
    Json rpath = Json::array();
    for (const auto& folder : library.rpath) rpath.push_back(base::printable(folder));
    Json runpath = Json::array();
    for (const auto& folder : library.runpath) runpath.push_back(base::printable(folder));
    Json json{{"path", base::printable(path)},
              {"size", library.file_size},
              {"machine", library.machine},
              {"readable", library.readable},
              {"soname", text_or_null(base::printable(library.soname))},
              {"needs", needs_json(library)},
              {"version_needs", needs},
              {"newest_versions", library.newest_versions},
              {"rpath", rpath},
              {"runpath", runpath},
              {"bind_now", library.bind_now},
              {"text_relocations", library.text_relocations},
              {"has_initializers", library.has_initializers},
              {"python_symbols", python},
              {"python_limited_api", limited},
              {"archs", binary::runnable_archs(library.device_code.entries)},
              {"archs_complete", library.device_code.complete},
              {"device_code", code_json(library.device_code)},
              {"sections", sections},
              {"symbols_complete", library.symbols.complete}};
    json["symbols"] = symbols ? symbols_json(library) : Json::array();
    return json;
}

Json kernel_json(const operations::KernelView& view, bool symbols) {
    const kernel::Inspection& inspection = view.inspection;
    const auto& metadata = inspection.build.metadata;
    Json json{{"kind", "kernel"},
              {"path", inspection.build.path.string()},
              {"repo_id", text_or_null(view.repo_id)},
              {"commit", text_or_null(view.commit)},
              {"variant", text_or_null(view.variant)},
              {"variants", view.variants},
              {"without_libraries", view.without_libraries},
              {"name", metadata ? Json(metadata->name) : Json()},
              {"id", metadata ? Json(metadata->id) : Json()},
              {"backend", metadata ? Json(target::backend_type_name(metadata->backend)) : Json()},
              {"declared_archs", metadata ? Json(metadata->archs) : Json::array()},
              {"archs", inspection.archs},
              {"archs_complete", inspection.archs_complete},
              {"problems", problems_json(inspection.problems)}};
    json["operators"] = Json::array();
    for (const auto& op : inspection.operators) json["operators"].push_back(operator_json(op));
    json["operators_complete"] = inspection.operators_complete && !view.without_libraries;
    json["tuning"] = tuning_json(view);
    json["functions"] = Json::array();
    for (const auto& one : inspection.functions) json["functions"].push_back(function_json(one));
    json["layers"] = Json::array();
    for (const auto& one : inspection.layers) json["layers"].push_back(layer_json(one));
    json["libraries"] = Json::array();
    json["needs"] = Json::array();
    json["symbols"] = Json::array();
    for (const auto& library : inspection.build.libraries) {
        Json one = library_json(library.path, library.library, symbols);
        for (auto& symbol : one["symbols"]) {
            symbol["library"] = one["path"];
            json["symbols"].push_back(std::move(symbol));
        }
        one.erase("symbols");
        for (const auto& name : one["needs"]) {
            if (std::find(json["needs"].begin(), json["needs"].end(), name) ==
                json["needs"].end()) {
                json["needs"].push_back(name);
            }
        }
        json["libraries"].push_back(std::move(one));
    }
    return json;
}

void print_kernel(const operations::KernelView& view, bool symbols, Console& console) {
    const kernel::Inspection& inspection = view.inspection;
    Printer printer(console);
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
        print_library_facts(library.path, library.library, printer);
        if (symbols) {
            print_symbols(library.library, printer);
        }
    }
    for (const auto& problem : inspection.problems) {
        console.warn(problem.message());
    }
}

void print_library(const std::string& path, const binary::Library& library, bool symbols,
                   Console& console) {
    Printer printer(console);
    print_library_facts(path, library, printer);
    if (symbols) {
        print_symbols(library, printer);
    }
}

}  // namespace twinkle::cli
