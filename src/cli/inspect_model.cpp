#include "cli/inspect_model.h"

#include <algorithm>

#include "base/file.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/choices_file.h"
#include "cli/document.h"
#include "cli/json_fields.h"
#include "cli/model_report.h"
#include "cli/model_request.h"
#include "cli/output_file.h"
#include "project/manifest.h"
#include "project/resolver.h"
#include "target/runtime.h"

namespace twinkle::cli {
namespace {

using base::Json;

// The mapping of the project, or of the bundled kernels. A model can be inspected without the
// project's kernels: then nothing is said of them.
std::optional<project::Resolution> mapping_here(const std::optional<std::filesystem::path>& start,
                                                Console& console) {
    project::ResolveOptions options;
    options.project = start ? std::nullopt : console.globals().project;
    options.start = start.value_or(std::filesystem::current_path());
    try {
        return project::resolve(options);
    } catch (const Error& error) {
        if (options.project && error.code() == ErrorCode::not_found) {
            throw;
        }
        const auto& details = error.details();
        console.warn("what kernels could take is not shown: " + details.what +
                     (details.why.empty() ? "" : ": " + details.why));
        return std::nullopt;
    }
}

// The list under a key; replaces any other value by an empty list.
Json& list_in(Json& object, const char* key) {
    auto& list = object[key];
    if (!list.is_array()) {
        list = Json::array();
    }
    return list;
}

bool names(const auto& layer, const std::string& class_name) {
    return std::any_of(layer.classes.begin(), layer.classes.end(), [&](const std::string& pattern) {
        return base::glob_match(pattern, class_name);
    });
}

// Adds classes without a binding that an installed but unused preset names.
void add_preset_bindings(Json& result, const std::vector<MappedLayer>& used) {
    const auto presets = target::installation(target::this_machine()).presets;
    const auto known = project::all_preset_layers(presets);
    auto& bindings = list_in(result, "bindings");
    for (const auto& one : list_in(result, "classes")) {
        const auto name = text_of(one, "name");
        const bool bound =
            std::any_of(bindings.begin(), bindings.end(),
                        [&](const Json& binding) { return text_of(binding, "class") == name; }) ||
            std::any_of(used.begin(), used.end(),
                        [&](const auto& any) { return names(any, name); });
        const auto layer = std::find_if(known.begin(), known.end(),
                                        [&](const auto& any) { return names(any, name); });
        if (bound || layer == known.end()) {
            continue;
        }
        const auto instances = one.find("instances");
        bindings.push_back({{"class", name},
                            {"layers", {layer->kernel_name}},
                            {"by", "preset"},
                            {"kernel", ""},
                            {"variant", ""},
                            {"sites", instances == one.end() ? Json() : *instances},
                            {"fits", nullptr},
                            {"kept", Json::array()},
                            {"attributes", Json::array()}});
    }
}

void print_graph(Json& graph, Console& console) {
    std::string text;
    for (const auto& method : list_in(graph, "methods")) {
        text +=
            (text.empty() ? "" : "\n") + text_of(method, "name") + ":\n" + text_of(method, "text");
    }
    console.result(text);
}

void say_written(const std::filesystem::path& file, std::size_t sites, Console& console) {
    if (console.json()) {
        console.result("inspect", {{"file", file.string()}, {"sites", sites}});
    } else {
        console.note("wrote " + base::display_path(file) + ": what serves " +
                     base::counted(sites, "site"));
    }
}

}  // namespace

base::Json inspection_of(const ModelInspection& inspection, Console& console) {
    protocol::Request request;
    request.command = "inspect";
    request.model = existing_file(inspection.model.string(), "model");
    request.kernel_dirs = kernel_folders(inspection.kernels);
    request.graph = inspection.graph;
    request.model_name = inspection.name.value_or("");
    const auto worker = find_worker(console);
    const auto resolution = mapping_here(inspection.start, console);
    if (resolution) {
        request.map = resolution->mapping.to_json();
    }
    auto result = run_worker(worker, request, console);
    const bool own = resolution && resolution->manifest;
    result["manifest"] = own ? Json(resolution->manifest->string()) : Json();
    result["file"] = request.model.string();
    if (text_of(result, "kind") == "compiled") {
        return result;
    }
    add_preset_bindings(result,
                        resolution ? resolution->mapping.layers : std::vector<MappedLayer>());
    return result;
}

void inspect_model(const ModelInspection& inspection, Console& console) {
    std::optional<std::filesystem::path> choices;
    if (inspection.choices) {
        choices = output_file(*inspection.choices, OutputKind::text, {inspection.model});
    }
    auto result = inspection_of(inspection, console);
    if (choices) {
        say_written(*choices, write_choices(*choices, result), console);
    } else if (console.json()) {
        console.result("inspect", std::move(result));
    } else if (text_of(result, "kind") == "compiled") {
        console.result(document_text(result, console.result_columns(), console.result_color()));
    } else if (inspection.graph && result["graph"].is_object()) {
        print_graph(result["graph"], console);
    } else {
        console.result(model_report(result, console.result_columns(), console.result_color(),
                                    console.globals().verbosity > 0));
    }
}

}  // namespace twinkle::cli
