#include "cli/kernelize_options.h"

#include <algorithm>

#include "base/text.h"
#include "project/modes.h"
#include "target/backend.h"
#include "twinkle/error.h"

namespace twinkle::cli {
namespace {

const std::vector<std::string> dtypes = {"bfloat16", "float16", "float32"};

[[noreturn]] void cannot_be(const std::string& option, const std::string& value,
                            const std::vector<std::string>& known) {
    const auto near = base::nearest(value, known);
    throw Error(ErrorCode::malformed, {.what = option + " cannot be '" + value + "'",
                                       .where = {},
                                       .why = "it is one of " + base::join(known, ", "),
                                       .hint = near ? "did you mean '" + *near + "'?" : ""});
}

}  // namespace

std::string checked_mode(const std::string& text) {
    const auto mode = project::parse_mode(text);
    if (!mode) {
        cannot_be("--mode", text, project::mode_names());
    }
    return *mode;
}

std::vector<std::string> checked_fallbacks(const std::string& text) {
    const std::vector<std::string> sets = {"true", "all", "false"};
    if (std::ranges::count(sets, text) != 0) {
        return {text};
    }
    std::vector<std::string> known = {
        "no-layer",           "no-device",      "no-compatible-properties",
        "no-compatible-mode", "cannot-compile", "cannot-load"};
    auto words = base::split(text, ',');
    for (const auto& word : words) {
        if (std::ranges::count(known, word) == 0) {
            known.insert(known.begin(), sets.begin(), sets.end());
            cannot_be("--fallback", word, known);
        }
    }
    return words;
}

std::string checked_dtype(const std::string& text) {
    if (std::find(dtypes.begin(), dtypes.end(), text) == dtypes.end()) {
        cannot_be("--dtype", text, dtypes);
    }
    return text;
}

std::string checked_device(const std::string& text) {
    const auto colon = text.find(':');
    const auto index = colon == std::string::npos ? "0" : text.substr(colon + 1);
    const bool number = !index.empty() && index.size() <= 3 &&
                        index.find_first_not_of("0123456789") == std::string::npos &&
                        std::stoi(index) < 128;  // LibTorch's are 8 bits, with a sign
    if (!number || !target::parse_device(text.substr(0, colon))) {
        throw Error(ErrorCode::malformed, {.what = "--device cannot be '" + text + "'",
                                           .where = {},
                                           .why = "the devices are " + target::device_names() +
                                                  ", also with a number: cuda:1",
                                           .hint = {}});
    }
    return text;
}

Option map_option() {
    return {.names = "--map",
            .value = "FILE",
            .help =
                "The mapping that twinkle resolve wrote (default: resolve now; without a "
                "manifest, "
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
            .choices = dtypes};
}

Option inputs_option() {
    return {.names = "--inputs",
            .value = "INPUTS",
            .help =
                "Inputs of the model: a file that torch.save wrote, or "
                "\"int64[1,128]:0..32000;float16[1,128,512]\" to make them",
            .kind = ValueKind::file};
}

Option only_option() {
    return {.names = "--only",
            .value = "GLOB",
            .help = "Only the sites whose names match; may be repeated",
            .repeatable = true};
}

Option exclude_option() {
    return {.names = "--exclude",
            .value = "GLOB",
            .help = "Not the sites whose names match; may be repeated",
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

void add_choice_of_sites(protocol::Request& request, const Arguments& arguments) {
    request.allow_io = arguments.flag("allow-io");
    request.only = arguments.list("only");
    request.exclude = arguments.list("exclude");
    if (const auto mode = arguments.text("mode")) {
        request.mode = checked_mode(*mode);
    }
    if (const auto device = arguments.text("device")) {
        request.device = checked_device(*device);
    }
}

void say_warnings(const base::Json& report, Console& console) {
    const auto warnings = report.find("warnings");
    for (const auto& warning : warnings != report.end() ? *warnings : base::Json::array()) {
        console.warn(warning.is_string() ? warning.get<std::string>() : base::dump_json(warning));
    }
}

}  // namespace twinkle::cli
