// twinkle inspect: the contents of a kernel, a library or a model.

#include <filesystem>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/hub_session.h"
#include "cli/inspect_compile.h"
#include "cli/inspect_load.h"
#include "cli/inspect_model.h"
#include "cli/kernel_json.h"
#include "cli/kernel_text.h"
#include "cli/kernelize_options.h"
#include "cli/library_json.h"
#include "cli/library_text.h"
#include "operations/targets.h"

namespace twinkle::cli {
namespace {

namespace fs = std::filesystem;

enum class Subject { kernel, library, model, spec };

// A folder is a kernel, an ELF file a library, any other file a model; a path that does not exist
// but looks like org/name is a kernel of the Hub.
Subject subject_of(const std::string& text) {
    std::error_code error;
    if (fs::is_directory(text, error)) {
        return Subject::kernel;
    }
    if (fs::is_regular_file(text, error)) {
        return binary::ElfLayout::read(binary::FileSource(text)) ? Subject::library
                                                                 : Subject::model;
    }
    const std::string extension = fs::path(text).extension().string();
    const bool file_name =
        extension == ".pt" || extension == ".pth" || extension == ".pt2" || extension == ".so";
    return project::is_path(text) || file_name || text.find('/') == std::string::npos
               ? Subject::model
               : Subject::spec;
}

void show_library(const std::string& path, bool symbols, bool load, Console& console) {
    const auto library = binary::read_library(fs::path(path));
    base::Json loaded = load ? load_kernel_apart(path, console) : base::Json();
    if (console.json()) {
        auto result = library_json(path, *library, symbols);
        result["kind"] = "library";
        if (load) {
            result["loaded"] = std::move(loaded);
        }
        console.result("inspect", std::move(result));
        return;
    }
    FactPrinter printer(console);
    print_library(path, *library, symbols, printer);
    if (load) {
        console.result("\n" +
                       load_report(loaded, console.result_columns(), console.result_color()));
    }
}

base::Json load_build(operations::KernelView& view, Console& console) {
    if (view.without_libraries) {
        throw Error(ErrorCode::not_found, {.what = "the build is not on this machine",
                                           .where = view.repo_id,
                                           .why = "--load needs its libraries",
                                           .hint = "twinkle fetch " + view.repo_id});
    }
    base::Json loaded = load_kernel_apart(view.inspection.build.path, console);
    note_registered(loaded, view);
    return loaded;
}

void show_kernel(operations::KernelView& view, bool symbols, bool load, Console& console) {
    if (view.without_libraries) {
        console.warn(
            "its libraries were not fetched: operators, symbols and architectures are not "
            "shown, nor whether the libraries need Python; `twinkle fetch` gets them");
    }
    base::Json loaded = load ? load_build(view, console) : base::Json();
    compile_sources(view, console);
    if (console.json()) {
        auto result = kernel_json(view, symbols);
        if (load) {
            result["loaded"] = std::move(loaded);
        }
        console.result("inspect", std::move(result));
        return;
    }
    print_kernel(view, symbols, console);
    if (load) {
        console.result("\n" +
                       load_report(loaded, console.result_columns(), console.result_color()));
    }
}

int run_inspect(const Arguments& arguments, Console& console) {
    const std::string text = *arguments.text("PATH|SPEC|MODEL");
    const Subject subject = subject_of(text);
    const bool symbols = arguments.flag("symbols");
    const bool load = arguments.flag("load");
    if (subject != Subject::model && arguments.text("choices")) {
        throw Error(ErrorCode::malformed, {.what = "only a kernelized model has choices",
                                           .where = text,
                                           .why = "",
                                           .hint = "leave out --choices"});
    }
    if (arguments.text("choices") && arguments.text("graph")) {
        throw Error(ErrorCode::malformed,
                    {.what = "--choices writes a file, and --graph shows a graph",
                     .where = text,
                     .why = "",
                     .hint = "leave out one of them"});
    }
    if (subject == Subject::model) {
        inspect_model({.model = text,
                       .name = arguments.text("model"),
                       .graph = arguments.text("graph"),
                       .choices = arguments.text("choices"),
                       .kernels = arguments.list("kernels")},
                      console);
        return 0;
    }
    if (subject == Subject::library) {
        show_library(text, symbols, load, console);
        return 0;
    }
    HubSession command(console);
    auto& context = command.context();
    const auto project = context.find_project();
    const auto target =
        operations::choose_targets(context, project ? &*project : nullptr, arguments.list("target"))
            .front();
    const auto variant = arguments.text("variant");
    auto view =
        subject == Subject::kernel
            ? operations::inspect_folder(text, variant, target)
            : operations::inspect_spec(context, project::parse_kernel_spec(text), variant, target);
    show_kernel(view, symbols, load, console);
    return 0;
}

}  // namespace

Command inspect_command() {
    return {
        .name = "inspect",
        .summary = "Show what is in a kernel or in a saved model",
        .description =
            "Of a kernel (a build, a folder of builds, a source project, or one of the Hub): its "
            "operators with their schemas, its functions and layers, which of them are usable "
            "without Python and why others are not, what its libraries need, and the GPU "
            "architectures that they have code for. Usable is what compiles for types that its "
            "source gives, against the operators' schemas; where there is no LibTorch, or a schema "
            "is not known, it is \"not compiled\". Nothing of it is loaded, unless --load asks "
            "for it; of a kernel that is not on this machine only metadata and Python are "
            "fetched. A single shared library is shown too.\n\n"
            "Of a model: its classes with their instances, the kernels that take them, the "
            "functions and operators that it calls, and the kernels that it needs. Nothing of the "
            "model is run and no kernel is loaded; what cannot be loaded here is read as text.",
        .arguments = {{.name = "PATH|SPEC|MODEL",
                       .help = "A folder with a kernel, a shared library, org/name, or a "
                               "TorchScript or exported model"}},
        .options = {{.names = "--symbols",
                     .value = "",
                     .help = "List the symbols of a kernel's libraries, too"},
                    {.names = "--load",
                     .value = "",
                     .help = "Load a kernel's libraries in a process of their own, for the "
                             "operators that they register, and their keys"},
                    {.names = "--variant",
                     .value = "VARIANT",
                     .help = "This build of a kernel, not the one for the target"},
                    target_option(false),
                    {.names = "--graph",
                     .value = "CLASS",
                     .help = "Only the graph of this class, instance or function, whole"},
                    {.names = "--choices",
                     .value = "FILE",
                     .help = "Write what serves each site of a kernelized model, as a file for "
                             "kernelize --choices, which takes nothing of --precision",
                     .kind = ValueKind::file},
                    model_name_option(),
                    model_kernels_option()},
        .examples = {{"The layers of a kernel, and which can be used",
                      "twinkle inspect kernels-community/activation"},
                     {"GPU architectures of a build, for a script",
                      "twinkle inspect build/torch213-cxx11-cu130-x86_64-linux --json | jq .archs"},
                     {"The classes that kernels could be bound to", "twinkle inspect model.pt"},
                     {"How one class computes", "twinkle inspect model.pt --graph LlamaRMSNorm"},
                     {"What was chosen for each site, to choose it again for another copy",
                      "twinkle inspect tuned.pt --choices choices.json"},
                     {"The kernels that a kernelized model needs",
                      "twinkle inspect fast.pt --json | jq .kernels"}},
        .run = run_inspect};
}

}  // namespace twinkle::cli
