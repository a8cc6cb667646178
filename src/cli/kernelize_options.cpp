#include "cli/kernelize_options.h"

#include "twinkle/error.h"

#include "cli/request_choices.h"
#include "project/modes.h"

namespace twinkle::cli {

Option map_option() {
    return {.names = "--map",
            .value = "FILE",
            .help =
                "The mapping that twinkle resolve wrote (default: resolve now; without a manifest, "
                "the bundled kernels)",
            .kind = ValueKind::file};
}

Option mode_option() {
    return {.names = "--mode",
            .value = "MODE",
            .help =
                "inference, training, inference+compile or training+compile (default: what the "
                "model's own training says)",
            .kind = ValueKind::choice,
            .choices = project::mode_names()};
}

Option device_option() {
    return {.names = "--device",
            .value = "DEVICE",
            .help = "The device that the model is for (default: that of its weights)",
            .kind = ValueKind::choice,
            .choices = {"cpu", "cuda"}};
}

Option dtype_option() {
    return {.names = "--dtype",
            .value = "DTYPE",
            .help =
                "Convert the model first, weights and the dtypes that its code names: "
                "bfloat16, float16 or float32",
            .kind = ValueKind::choice,
            .choices = dtype_names()};
}

Option inputs_option() {
    return {.names = "--inputs",
            .value = "INPUTS",
            .help =
                "Inputs of the model: a file that torch.save wrote (one tensor, a tuple or list of "
                "arguments, a dict of named ones), or a description of each argument, with a "
                "semicolon between them: \"int64[1,128]:0..32000;float16[1,128,512]\"",
            .kind = ValueKind::file};
}

Option several_inputs_option() {
    Option option = inputs_option();
    option.repeatable = true;
    option.help += ". May be repeated: each is another set of inputs, not another argument";
    return option;
}

Option only_option() {
    return {
        .names = "--only",
        .value = "GLOB",
        .help =
            "Only the sites whose whole names match (* and ?; -v lists the names); may be repeated",
        .repeatable = true};
}

Option exclude_option() {
    return {.names = "--exclude",
            .value = "GLOB",
            .help =
                "Not the sites whose whole names match (* and ?; -v lists the names): "
                "'model.layers.0.*'; may be repeated",
            .repeatable = true};
}

Option model_kernels_option() {
    return {.names = "--kernels",
            .value = "DIR",
            .help = "Look for the model's kernels there first; may be repeated",
            .kind = ValueKind::folder,
            .repeatable = true};
}

Option model_name_option() {
    return {.names = "--model",
            .value = "NAME",
            .help = "Which model of an archive of torch.export that holds several"};
}

Option allow_io_option() {
    return {.names = "--allow-io",
            .value = "",
            .help =
                "Let the model's own code read and write files, speak to other processes and use "
                "the network (aten::save and the like); without it such a model is refused before "
                "anything of it runs"};
}

Option graphs_option() {
    return {.names = "--graphs",
            .value = "",
            .help =
                "Mark the model: on a GPU, programs that load it replay its runs as CUDA "
                "graphs, for each shape of inputs where that is faster"};
}

Option freeze_option() {
    return {.names = "--freeze",
            .value = "",
            .help =
                "Write the model frozen, as torch::jit::freeze makes it; where kernels are "
                "measured, only if that is faster. Its weights are constants then: it cannot "
                "be trained, moved, or given others"};
}

void add_form(protocol::Request& request, const Arguments& arguments) {
    request.graphs = arguments.flag("graphs");
    request.freeze = arguments.flag("freeze");
    if (request.graphs && request.freeze) {
        throw Error(ErrorCode::malformed,
                    {.what = "--graphs and --freeze contradict each other",
                     .where = {},
                     .why = "a model whose runs are replayed is frozen when it is loaded",
                     .hint = "leave out --freeze"});
    }
}

}  // namespace twinkle::cli
