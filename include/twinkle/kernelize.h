#pragma once
// Kernelize: replaces layers of a saved TorchScript model by kernels, as a mapping says.
//
// A site is one instance of a bound class. Every site ends in the report: replaced, or kept with
// the reason. The model is changed in place, whether it has run before or not, and so is
// everything that shares its code: a Module that is the same object, a torch::jit::Method taken
// before, a copy made by deepcopy(). clone() makes an independent copy. An instance that gets a
// class of its own becomes a new object of the model. After an error the model may be partly
// changed: load it again.
//
// Thread-safety: different models may be kernelized by different threads; one model by one at a
// time.

#include "twinkle/mapping.h"
#include "twinkle/report.h"

#include <torch/script.h>

#include <concepts>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace twinkle {

// The cases in which the original forward is kept instead of an error.
enum class Fallback {
    no_layer,
    no_device,
    no_compatible_properties,
    no_compatible_mode,
    cannot_compile,
    cannot_load,
};
using FallbackSet = std::set<Fallback>;

TWINKLE_API FallbackSet default_fallbacks();               // all but cannot_load
TWINKLE_API const char* fallback_name(Fallback fallback);  // "no-layer", …
// "true", "all", "false", or names separated by commas; throws Error(malformed).
TWINKLE_API FallbackSet parse_fallbacks(const std::vector<std::string>& words);

struct KernelizeOptions {
    std::optional<std::string>
        mode{};  // inference, training, …; none: what the model's training says
    // None: that of the first parameter. A named device is where the model will run: other devices
    // that its code names become that of its weights.
    std::optional<std::string> device{};
    // bfloat16, float16 or float32: the model is converted first, weights and the constants in its
    // code. Error(refused) if the meaning of a constant cannot be determined. None: it stays as it
    // is.
    std::optional<std::string> dtype{};
    std::vector<std::string> only{};  // globs over sites; empty: all
    std::vector<std::string> exclude{};
    // False: for another machine. Operators are declared as the mapping has them, and no library of
    // a kernel is opened; the model cannot be run in this process.
    bool load_kernels = true;
    FallbackSet fallback = default_fallbacks();
    bool strict = false;  // a site that is bound but kept is Error(refused)
    // Coarser precisions that layers may compute in ("int8"): a site gets one where it has no exact
    // candidate. Nothing is compared here: `twinkle kernelize --precision` keeps to an error.
    std::vector<std::string> precisions{};
    // Inputs of forward. A call that a trace has inlined is replaced only if a run of the model on
    // these proves how: its kernel runs for that.
    std::vector<c10::IValue> inputs{};
    std::unordered_map<std::string, c10::IValue> named_inputs{};
    // Opens no library of a kernel in this process, because it is foreign code: confined child
    // processes open them, list their operators, and prove. For a model that will be saved: it
    // cannot be run here. Not in a process that has run models: a child has none of its threads.
    bool kernels_in_children = false;
    // Proves on this device instead of the model's own, in a child process.
    std::optional<torch::Device> prove_on{};
    // Called for every site that a binding fits; a reason keeps the original.
    std::function<std::optional<std::string>(const MappedLayer& layer, const std::string& site,
                                             const torch::jit::Module& instance)>
        unfit{};
    // Called before each step: "load-kernel" with the kernel's name, "compile" with a class.
    std::function<void(const std::string& stage, const std::string& what)> observer{};
};

struct Kernelized {
    torch::jit::Module model;
    Report report;
};

// Throws Error: refused (a fallback that is not allowed, a kernel that cannot be loaded),
// verification (a file of a kernel differs from the mapping), malformed (no TorchScript model,
// unknown mode).
TWINKLE_API Report kernelize_with(torch::jit::Module& model, const Mapping& mapping,
                                  const KernelizeOptions& options = {});
// A template, so that kernelize(model, {}) is the one of registry.h.
template <std::same_as<Mapping> M>
Report kernelize(torch::jit::Module& model, const M& mapping,
                 const KernelizeOptions& options = {}) {
    return kernelize_with(model, mapping, options);
}
TWINKLE_API Kernelized kernelize(const std::filesystem::path& model, const Mapping& mapping,
                                 const KernelizeOptions& options = {});

}  // namespace twinkle
