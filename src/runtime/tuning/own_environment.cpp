#include "runtime/tuning/own_environment.h"

#include "base/text.h"
#include "runtime/kernels/own_target.h"
#include "target/machine.h"
#include "twinkle/device.h"
#include "twinkle/error.h"

#include <ATen/Parallel.h>

namespace twinkle {

namespace {

[[noreturn]] void unknown_device(const c10::Device& device) {
    throw Error(ErrorCode::malformed, {.what = "nothing is tuned for this kind of device",
                                       .where = base::printable(device.str()),
                                       .why = "there are CPUs and GPUs of CUDA and ROCm",
                                       .hint = ""});
}

bool is_rocm() {
    static const bool rocm = runtime::own_target().backend.kind == target::BackendKind::rocm;
    return rocm;
}

}  // namespace

namespace runtime {

tuning::ProcessFacts process_facts() {
    const target::Backend& backend = own_target().backend;
    const std::string version = backend.version ? backend.version->text() : "";
    return {at::get_num_threads(), backend.kind == target::BackendKind::cuda ? version : "",
            backend.kind == target::BackendKind::rocm ? version : ""};
}

std::shared_ptr<tuning::FileStore> own_store(const std::filesystem::path& folder) {
    const target::Machine& machine = target::this_machine();
    return std::make_shared<tuning::FileStore>(
        tuning::Store(folder.empty() ? tuning::Store::usual_place(machine) : folder), machine,
        process_facts);
}

}  // namespace runtime

std::string device_kind(const c10::Device& device) {
    return get_device_platform(device) == "cpu" ? "cpu" : "gpu";
}

std::string get_device_platform(const c10::Device& device) {
    switch (device.type()) {
        case c10::kCPU: return "cpu";
        case c10::kCUDA: return is_rocm() ? "rocm" : "cuda";
        case c10::kHIP: return "rocm";
        default: unknown_device(device);
    }
}

std::string device_fingerprint(const c10::Device& device) {
    return tuning::environment_of(get_device_platform(device), target::this_machine(),
                                  runtime::process_facts())
        .id();
}

PersistentCache::PersistentCache(const std::filesystem::path& folder)
    : store_(runtime::own_store(folder)) {}

ConfigSelectorChain::ConfigSelectorChain()
    : ConfigSelectorChain(ConfigCache(), PersistentCache()) {}

}  // namespace twinkle
