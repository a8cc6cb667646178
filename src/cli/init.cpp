// twinkle init: a first manifest, with the contents of a model.

#include <filesystem>

#include "base/file.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/inspect_model.h"
#include "cli/interrupt.h"
#include "cli/json_fields.h"
#include "project/new_manifest.h"
#include "twinkle/error.h"

namespace twinkle::cli {
namespace {

namespace fs = std::filesystem;

// One entry for each class that some layer may replace.
std::vector<project::ClassFound> classes_in(const base::Json& inspection) {
    std::vector<project::ClassFound> classes;
    const auto bindings = inspection.find("bindings");
    if (bindings == inspection.end() || !bindings->is_array()) {
        return classes;
    }
    for (const auto& binding : *bindings) {
        const auto layers = binding.find("layers");
        const auto sites = binding.find("sites");
        if (layers == binding.end() || !layers->is_array() || layers->empty() ||
            !layers->front().is_string()) {
            continue;
        }
        project::ClassFound found;
        found.class_name = text_of(binding, "class");
        found.layer = layers->front().get<std::string>();
        found.kernel = text_of(binding, "kernel");
        found.instances =
            sites != binding.end() && sites->is_number_unsigned() ? sites->get<std::size_t>() : 0;
        found.in_preset = text_of(binding, "by") != "name";
        classes.push_back(std::move(found));
    }
    return classes;
}

std::vector<project::FunctionFound> functions_in(const base::Json& inspection) {
    std::vector<project::FunctionFound> functions;
    for (const auto& binding : inspection.value("bindings", base::Json::array())) {
        if (text_of(binding, "kind") != "function") {
            continue;
        }
        const auto fits = binding.value("fits", std::size_t{0});
        if (fits > 0) {
            functions.push_back({text_of(binding, "class"), text_of(binding, "kernel"), fits,
                                 text_of(binding, "by") != "name"});
        }
    }
    return functions;
}

fs::path manifest_file(const Console& console, bool force) {
    const fs::path folder = console.globals().project.value_or(".");
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        throw Error(ErrorCode::not_found, {.what = "the folder of the project is not there",
                                           .where = base::display_path(folder),
                                           .why = "",
                                           .hint = ""});
    }
    const fs::path file = folder / "twinkle.toml";
    if (!force && fs::exists(fs::symlink_status(file, error))) {
        throw Error(ErrorCode::malformed, {.what = "there is a manifest already",
                                           .where = base::display_path(file),
                                           .why = "it is not overwritten",
                                           .hint = "--force overwrites it"});
    }
    return file;
}

int run_init(const Arguments& arguments, Console& console) {
    const fs::path file = manifest_file(console, arguments.flag("force"));
    const auto model = arguments.text("MODEL");
    std::vector<project::ClassFound> classes;
    std::vector<project::FunctionFound> functions;
    if (model) {
        const auto inspection =
            inspection_of({.model = *model, .start = file.parent_path()}, console);
        classes = classes_in(inspection);
        functions = functions_in(inspection);
    }
    const std::string text = project::new_manifest(model.value_or(""), classes, functions);
    {
        const InterruptDelay whole_file;
        base::write_file_atomically(file, text);
    }
    if (console.json()) {
        base::Json list = base::Json::array();
        for (const auto& found : classes) {
            list.push_back({{"class", found.class_name},
                            {"layer", found.layer},
                            {"kernel", found.kernel},
                            {"instances", found.instances},
                            {"bound", found.in_preset}});
        }
        base::Json called = base::Json::array();
        for (const auto& found : functions) {
            called.push_back({{"function", found.name},
                              {"kernel", found.kernel},
                              {"calls", found.calls},
                              {"bound", found.bound}});
        }
        console.result("init",
                       {{"manifest", file.string()}, {"classes", list}, {"functions", called}});
    } else {
        console.note("wrote " + base::display_path(file));
    }
    return 0;
}

}  // namespace

Command init_command() {
    return {
        .name = "init",
        .summary = "Write a first twinkle.toml, with what a model holds",
        .description =
            "Writes a commented manifest into this folder, or that of --project. With a model, its "
            "classes are looked at: those that a preset names are bound by it; those whose name "
            "and attributes fit a layer are proposed in comments, and so are functions that it "
            "calls and a kernel has by that name, since a name does not say what is computed. "
            "kernelize --verify compares the values.",
        .arguments = {{.name = "MODEL",
                       .help = "A TorchScript model (needs a runtime)",
                       .required = false}},
        .options = {{.names = "--force",
                     .value = "",
                     .help = "Overwrite a manifest that is there"}},
        .examples = {{"A manifest to start from", "twinkle init"},
                     {"With the classes of a model", "twinkle init model.pt"}},
        .run = run_init};
}

}  // namespace twinkle::cli
