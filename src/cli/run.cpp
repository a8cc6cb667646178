// twinkle run: runs a model, kernelized or not.

#include "base/file.h"
#include "cli/command.h"
#include "cli/document.h"
#include "cli/kernelize_options.h"
#include "cli/model_mapping.h"
#include "cli/model_request.h"
#include "cli/output_file.h"
#include "cli/request_choices.h"
#include "cli/written_file.h"

namespace twinkle::cli {
namespace {

int run_model(const Arguments& arguments, Console& console) {
    protocol::Request request;
    request.command = "run";
    request.model = existing_file(*arguments.text("MODEL"), "model");
    std::vector<std::filesystem::path> sources = {request.model};
    if (const auto inputs = arguments.text("inputs")) {
        request.inputs = inputs_argument(*inputs);
        sources.emplace_back(*request.inputs);
    }
    if (const auto output = arguments.text("output")) {
        request.output = output_file(*output, OutputKind::tensors, sources);
    }
    if (const auto device = arguments.text("device")) {
        request.device = checked_device(*device);
    }
    request.method = arguments.text("method").value_or("forward");
    request.kernel_dirs = kernel_folders(arguments.list("kernels"));
    request.allow_io = arguments.flag("allow-io");
    request.model_name = arguments.text("model").value_or("");
    if (request.model.extension() == ".pt2") {  // another kind of model names builds by itself
        add_project_kernels(request, console);
    }

    auto result = run_worker(find_worker(console), request, console);
    console.progress().show("checking what was written");
    require_written(result, request);
    console.progress().clear();
    if (console.json()) {
        console.result("run", std::move(result));
    } else {
        console.result(document_text(result, console.result_columns(), console.result_color()));
    }
    if (request.output) {
        console.note("wrote " + base::display_path(*request.output));
    }
    return 0;
}

}  // namespace

Command run_command() {
    return {
        .name = "run",
        .summary = "Run a model, kernelized or not",
        .description =
            "Loads the kernels that the model names, runs it, and writes its outputs as "
            "torch.load(weights_only=True) reads them. The kernels are looked for in --kernels, "
            "TWINKLE_KERNELS and the bundled pack, and are used only if their hashes are those "
            "that the model names. An exported model (.pt2) names operators alone: their kernels "
            "are also looked for among those that the manifest names.",
        .arguments = {{.name = "MODEL",
                       .help = "A TorchScript model, or an archive of torch.export"}},
        .options = {{.names = "--inputs",
                     .value = "INPUTS",
                     .help =
                         "A file that torch.save wrote (a tensor, a tuple or list, a dict of named "
                         "inputs), or \"int64[1,128]:0..32000;float16[1,128,512]\" to make them",
                     .kind = ValueKind::file},
                    {.names = "-o,--output",
                     .value = "FILE",
                     .help = "Where to write the outputs",
                     .kind = ValueKind::file},
                    {.names = "--method",
                     .value = "NAME",
                     .help = "The method to call (default: forward)"},
                    {.names = "--device",
                     .value = "DEVICE",
                     .help = "Where to run (default: where the model's parameters are)",
                     .kind = ValueKind::choice,
                     .choices = {"cpu", "cuda"}},
                    model_kernels_option(),
                    model_name_option(),
                    allow_io_option()},
        .examples = {{"Run a kernelized model",
                      "twinkle run fast.pt --inputs inputs.pt -o outputs.pt"},
                     {"On inputs made up from a fixed seed",
                      "twinkle run model.pt --inputs \"int64[1,128]:0..32000\" -o outputs.pt"}},
        .run = run_model};
}

}  // namespace twinkle::cli
