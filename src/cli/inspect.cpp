// twinkle inspect: what is in a model.

#include "cli/command.h"
#include "cli/document.h"
#include "cli/model_request.h"

namespace twinkle::cli {
namespace {

int run(const Arguments& arguments, Console& console) {
    auto request = new_request("inspect", console);
    request["model"] = existing_file(*arguments.text("MODEL"), "model").string();
    request["kernel_dirs"] = kernel_folders({});
    auto result = run_worker(find_worker(console), request, console);
    if (console.json()) {
        console.result("inspect", std::move(result));
    } else {
        console.result(document_text(result, console.result_columns(), console.result_color()));
    }
    return 0;
}

}  // namespace

Command inspect_command() {
    return {.name = "inspect",
            .summary = "Show what is in a saved model",
            .description =
                "Lists the classes of the model with their instances, the operators that it calls, "
                "and the kernels that it needs. Nothing of the model is run.",
            .arguments = {{.name = "MODEL", .help = "A TorchScript model"}},
            .options = {},
            .examples = {{"The classes that kernels could be bound to", "twinkle inspect model.pt"},
                         {"The kernels that a kernelized model needs",
                          "twinkle inspect fast.pt --json | jq .kernels"}},
            .run = run};
}

}  // namespace twinkle::cli
