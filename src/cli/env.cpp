// twinkle env: facts of this machine. Its --json is a target file for --target.

#include "cache/layout.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/document.h"
#include "hub/settings.h"
#include "target/machine.h"
#include "target/runtime.h"
#include "target/target.h"

namespace twinkle::cli {
namespace {

using base::Json;

Json runtime_json(const target::Runtime& runtime) {
    return {{"name", runtime.name},
            {"torch", runtime.torch_version},
            {"backend", runtime.backend.text()},
            {"cxx11", runtime.cxx11},
            {"folder", runtime.folder.string()},
            {"torch_lib", runtime.torch_lib.string()}};
}

Json gpu_json(const target::Gpu& gpu) {
    return {{"name", gpu.name}, {"arch", gpu.arch}, {"memory_bytes", gpu.memory_bytes}};
}

Json gpus_json(const std::optional<target::CudaDriver>& cuda,
               const std::vector<target::Gpu>& rocm) {
    Json gpus = Json::array();
    for (const auto& gpu : cuda ? cuda->gpus : std::vector<target::Gpu>{}) {
        gpus.push_back(gpu_json(gpu));
    }
    for (const auto& gpu : rocm) {
        gpus.push_back(gpu_json(gpu));
    }
    return gpus;
}

// Says whether there is a token, never which.
Json hub_json(const target::Machine& machine, bool offline) {
    const auto settings = hub::settings_from(machine);
    return {{"cache", cache::cache_folder(machine).string()},
            {"endpoint", settings.endpoint},
            {"offline", offline || settings.offline},
            {"token", !settings.token.empty()}};
}

Json facts(bool offline) {
    const auto& machine = target::this_machine();
    const auto places = target::installation(machine);
    const auto cuda = machine.may_have_cuda() ? machine.cuda_driver() : std::nullopt;
    const auto glibc = machine.glibc();
    const auto cpu = machine.cpu();
    Json runtimes = Json::array();
    for (const auto& runtime : target::find_runtimes(places.libexec, machine)) {
        runtimes.push_back(runtime_json(runtime));
    }
    const auto used = target::choose_runtime(machine);
    return {{"twinkle", TWINKLE_VERSION},
            {"target", target::choose_target({}, {}, machine, used).to_map()},
            {"runtime", used ? Json(used->name) : Json()},
            {"runtimes", runtimes},
            {"cuda_driver", cuda ? Json(cuda->version.text()) : Json()},
            {"gpus", gpus_json(cuda, machine.rocm_gpus())},
            {"cpu",
             {{"arch", cpu.arch},
              {"model", cpu.model},
              {"cores", cpu.cores},
              {"features", cpu.features}}},
            {"hub", hub_json(machine, offline)},
            {"os", machine.os()},
            {"glibc", glibc ? Json(glibc->text()) : Json()},
            {"kernels", places.kernels.string()},
            {"presets", places.presets.string()}};
}

// The facts line by line, with nested objects flattened to "cpu model: …".
std::string text(const Json& facts, Console& console) {
    Json flat = Json::object();
    for (const auto& [key, value] : facts.items()) {
        if (key == "target") {
            std::string joined;
            for (const auto& [name, setting] : value.items()) {
                joined += (joined.empty() ? "" : ",") + name + "=" + setting.get<std::string>();
            }
            flat[key] = joined;
        } else if (value.is_object()) {
            for (const auto& [name, fact] : value.items()) {
                flat[key + " " + name] = fact;
            }
        } else {
            flat[key] =
                value.is_null() || (value.is_array() && value.empty()) ? Json("none") : value;
        }
    }
    return document_text(flat, console.result_columns(), console.result_color());
}

int run_env(const Arguments&, Console& console) {
    auto document = facts(console.globals().offline);
    if (console.json()) {
        console.result("env", std::move(document));
    } else {
        console.result(text(document, console));
    }
    return 0;
}

}  // namespace

Command env_command() {
    return {
        .name = "env",
        .summary = "Show the facts of this machine that decisions depend on",
        .description =
            "The runtimes (one for each LibTorch that twinkle was built for), the CPU, the GPUs "
            "and their driver, the Hub and the cache, and where twinkle's parts are. The output of "
            "--json can be given to --target on another machine.",
        .arguments = {},
        .options = {},
        .examples = {{"Facts for a bug report", "twinkle env"},
                     {"Choose kernels here for that machine",
                      "ssh server twinkle env --json > server.json && twinkle resolve --target "
                      "server.json"}},
        .run = run_env};
}

}  // namespace twinkle::cli
