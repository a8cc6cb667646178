// twinkle convert: an archive of torch.export in, a TorchScript model out.

#include "base/file.h"
#include "cli/command.h"
#include "cli/kernelize_options.h"
#include "cli/model_mapping.h"
#include "cli/model_request.h"
#include "cli/output_file.h"
#include "cli/written_file.h"

namespace twinkle::cli {
namespace {

// model.pt2 → model.pt, in the current folder.
std::string default_output(const std::string& model) {
    return std::filesystem::path(model).stem().string() + ".pt";
}

int run_convert(const Arguments& arguments, Console& console) {
    const std::string model = *arguments.text("MODEL");
    protocol::Request request;
    request.command = "convert";
    request.model = existing_file(model, "model");
    request.model_name = arguments.text("model").value_or("");
    request.output = output_file(arguments.text("output").value_or(default_output(model)),
                                 OutputKind::tensors, {request.model});
    request.strip_debug = arguments.flag("strip-debug");
    request.kernel_dirs = kernel_folders(arguments.list("kernels"));
    add_project_kernels(request, console);
    auto result = run_worker(find_worker(console), request, console);
    console.progress().show("checking what was written");
    require_written(result, request);
    console.progress().clear();
    if (console.json()) {
        console.result("convert", std::move(result));
    }
    console.note("wrote " + base::display_path(*request.output));
    return 0;
}

}  // namespace

Command convert_command() {
    return {
        .name = "convert",
        .summary = "Make a TorchScript model of an exported one",
        .description =
            "Reads an archive of torch.export (.pt2) and writes the same model as TorchScript, "
            "which torch::jit::load runs: the modules with their names and classes, the inputs "
            "and outputs as they are nested, and checks of what the model was exported for. "
            "Nothing of the archive is unpickled, evaluated or run. Every other command takes "
            "such an archive, too, and converts it in memory.\n\n"
            "Kernels whose operators the model calls are looked for in --kernels, "
            "TWINKLE_KERNELS, the bundled pack, and among those that the manifest names; the "
            "model that is written names their builds by hash.",
        .arguments = {{.name = "MODEL", .help = "An archive that torch.export.save wrote"}},
        .options = {{.names = "-o,--output",
                     .value = "FILE",
                     .help = "Where to write the model (default: NAME.pt in the current folder)",
                     .kind = ValueKind::file},
                    model_name_option(),
                    model_kernels_option(),
                    {.names = "--strip-debug",
                     .value = "",
                     .help = "Leave out the lines of Python that the model's code came from, with "
                             "their paths"}},
        .examples = {{"For a C++ server", "twinkle convert model.pt2 -o model.pt"}},
        .run = run_convert};
}

}  // namespace twinkle::cli
