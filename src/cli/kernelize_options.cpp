#include "cli/kernelize_options.h"

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/text.h"
#include "cli/model_request.h"
#include "cli/resolution.h"
#include "kernel/archs.h"
#include "target/backend.h"
#include "target/machine.h"
#include "target/runtime.h"
#include "target/target.h"
#include "twinkle/error.h"
#include "twinkle/mapping.h"

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

// A mapping says which machine it is for; --target beside it may not say another.
void require_target(const Mapping& mapping, const std::string& file, const target::Target& target) {
    const auto wanted = target.to_map();
    for (const MappedKernel& kernel : mapping.kernels) {
        const auto kind = target::parse_backend_type(kernel.device);
        const std::string& arch = wanted.at("arch");
        if (kind && arch != "none" && !kernel.archs.empty() &&
            !kernel::archs_support(kernel.archs, *kind, arch)) {
            throw Error(ErrorCode::refused,
                        {.what = "the kernel " + kernel.name + " has no code for the target's GPU",
                         .where = file,
                         .why = "it is built for " + base::join(kernel.archs, ", ") +
                                ", the target is " + arch,
                         .hint = "twinkle versions --target shows which builds fit"});
        }
    }
    for (const auto& [key, value] : wanted) {
        const auto mapped = mapping.target.find(key);
        if (key != "arch" && mapped != mapping.target.end() && mapped->second != value) {
            throw Error(ErrorCode::malformed,
                        {.what = "the mapping is for another machine than --target says",
                         .where = file,
                         .why = "its " + key + " is " + base::printable(mapped->second) + ", not " +
                                base::printable(value),
                         .hint = "resolve it with that --target, or leave out --map"});
        }
    }
}

Mapping read_or_resolve_mapping(const Arguments& arguments, Console& console,
                                const std::optional<std::string>& target) {
    if (const auto file = arguments.text("map")) {
        auto mapping = Mapping::load(existing_file(*file, "mapping"));
        if (target) {
            require_target(mapping, *file, named_target(console, *target));
        }
        return mapping;
    }
    ResolveChoices choices;
    choices.target = target;
    auto resolution = resolve_now(console, choices);
    console.note(resolution.manifest
                     ? "kernels as " + base::display_path(*resolution.manifest) + " says"
                     : "no manifest here: the bundled kernels are used");
    return std::move(resolution.mapping);
}

// A model for a machine goes to a device that is there.
void require_device(const std::string& device, const std::string& of_target) {
    const auto kind = target::parse_device(device.substr(0, device.find(':')));
    if (kind != "cpu" && kind != of_target) {
        throw Error(ErrorCode::malformed,
                    {.what = "the target has no device " + device,
                     .where = {},
                     .why = "its devices are cpu" + (of_target == "cpu" ? "" : " and " + of_target),
                     .hint = "leave out --device, or name another --target"});
    }
}

// The device that a machine is chosen for: that of its backend.
std::string device_of(const Mapping& mapping) {
    const auto named = mapping.target.find("backend");
    const auto backend =
        named == mapping.target.end() ? std::nullopt : target::parse_backend(named->second);
    return backend ? backend->device() : "cpu";
}

}  // namespace

std::string normalized_mode(const std::string& text) {
    static constexpr std::array<std::array<const char*, 2>, 7> modes = {{
        {"inference", "inference"},
        {"training", "training"},
        {"train", "training"},
        {"compile", "inference+compile"},
        {"inference+compile", "inference+compile"},
        {"training+compile", "training+compile"},
        {"train+compile", "training+compile"},
    }};
    for (const auto& [written, meant] : modes) {
        if (text == written) {
            return meant;
        }
    }
    cannot_be("--mode", text, {"inference", "training", "inference+compile", "training+compile"});
}

std::vector<std::string> fallback_words(const std::string& text) {
    const std::vector<std::string> sets = {"true", "all", "false"};
    if (std::find(sets.begin(), sets.end(), text) != sets.end()) {
        return {text};
    }
    const std::vector<std::string> names = {
        "no-layer",           "no-device",      "no-compatible-properties",
        "no-compatible-mode", "cannot-compile", "cannot-load"};
    auto words = base::split(text, ',');
    for (const auto& word : words) {
        if (std::find(names.begin(), names.end(), word) == names.end()) {
            auto known = sets;
            known.insert(known.end(), names.begin(), names.end());
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
            .choices = {"inference", "training", "inference+compile", "training+compile"}};
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

void add_choice_of_sites(base::Json& request, const Arguments& arguments) {
    request["only"] = arguments.list("only");
    request["exclude"] = arguments.list("exclude");
    if (const auto mode = arguments.text("mode")) {
        request["mode"] = normalized_mode(*mode);
    }
    if (const auto device = arguments.text("device")) {
        request["device"] = checked_device(*device);
    }
}

void add_mapping(base::Json& request, const Arguments& arguments, Console& console,
                 const std::optional<std::string>& target) {
    const auto mapping = read_or_resolve_mapping(arguments, console, target);
    request["map"] = base::parse_json(mapping.to_json(), "mapping");
    if (target && request["device"].is_null()) {
        request["device"] = device_of(mapping);
    } else if (target) {
        require_device(request["device"].get<std::string>(), device_of(mapping));
    }
    auto folders = kernel_folders({});
    for (const auto& kernel : mapping.kernels) {
        folders.push_back(kernel.path);
    }
    request["kernel_dirs"] = folders;
}

void say_warnings(const base::Json& report, Console& console) {
    const auto warnings = report.find("warnings");
    for (const auto& warning : warnings != report.end() ? *warnings : base::Json::array()) {
        console.warn(warning.is_string() ? warning.get<std::string>() : base::dump_json(warning));
    }
}

}  // namespace twinkle::cli
