#pragma once
// Kernels that a program registers by itself, and models that are kernelized by them. The names are
// those of Python's `kernels` package.
//
// A function kernel replaces a function of a Python module wherever a model calls it: in scripted
// code, and in traced code if the function was scripted.
//
// A layer kernel is registered under a kernel name, per device and mode; a kernel name is bound to
// classes of saved models: by register_external_layer, by `classes`, else by the installed preset.
// Kernels of the Hub come from the cache, in the version that a lock or the cache itself says;
// there is no network, unless a hub client is set.
//
// Thread-safety: everything here. A scope of use_kernel_mapping belongs to the thread that made it.

#include "twinkle/function_implementation.h"
#include "twinkle/kernelize.h"

#include <compare>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace twinkle {

// 1 is the branch v1; "0.1.0" and ">=0.1,<0.3" are releases (tags).
using KernelVersion = std::variant<int, std::string>;

// A layer of a kernel.
struct LayerRepository {
    std::string repo_id{};     // a kernel of the Hub …
    std::string layer_name{};  // class in its layers module; empty: the kernel name
    // At most one of them. Neither: the branch main, with a warning.
    std::optional<KernelVersion> version{};
    std::string revision{};             // branch, tag or commit
    std::filesystem::path repo_path{};  // … or of a folder; neither: the bundled kernels
    std::string package_name{};         // the package in repo_path, where it has several
    std::filesystem::path lockfile{};   // says what is meant; empty: the registry's lock
};

// A kind of device: cpu, cuda, rocm, mps ("metal"), xpu, npu, neuron, tpu. With a range of compute
// capabilities (major * 10 + minor, inclusive) only such devices; for cuda and rocm.
struct Device {
    std::string type{};  // empty: every device that the kernel has a build for
    std::optional<std::pair<int, int>> capability{};

    Device() = default;
    Device(const char* name) : type(name) {}             // NOLINT(google-explicit-constructor)
    Device(std::string name) : type(std::move(name)) {}  // NOLINT(google-explicit-constructor)
    Device(std::string name, int least, int most)
        : type(std::move(name)), capability(std::pair(least, most)) {}
    auto operator<=>(const Device&) const = default;
};

// Mode → layer. One layer alone stands for "fallback": every mode that its flags allow.
struct ModeRepositories : std::map<std::string, LayerRepository> {
    using map::map;
    ModeRepositories(LayerRepository repository)  // NOLINT(google-explicit-constructor)
        : map{{"fallback", std::move(repository)}} {}
};

// Kernel name → device → mode → layer.
using KernelMapping = std::map<std::string, std::map<Device, ModeRepositories>>;

// An instance of a class is replaced only where this holds.
using InstanceCondition = std::function<bool(const torch::jit::Module& instance)>;

// A layer kernel with everything that a manifest can say of it.
struct LayerKernel {
    std::string kernel_name;
    std::string repo_id{};
    std::optional<KernelVersion> version{};
    std::string revision{};
    std::filesystem::path repo_path{};
    std::string package_name{};
    std::string layer_name{};  // empty: kernel_name
    std::string device{};      // empty: every device with a build
    std::string mode{};  // inference, training ("train"), "+compile" ("compile"); empty: fallback
    std::optional<std::pair<int, int>> capability{};
    std::filesystem::path lockfile{};
    // Empty: those of register_external_layer and of the preset for this kernel name.
    std::vector<std::string> classes{};
    std::vector<std::string> modules{};            // globs over instances; empty: all
    std::map<std::string, AttributeValue> when{};  // only instances with these attributes
    std::map<std::string, std::vector<std::string>> when_submodule{};
    std::map<std::string, AttributeValue> attributes{};  // supplied where the saved model lost them
    InstanceCondition condition{};
};

// Replaces a Python function that models call. Exactly one of func_impl, repo, repo_id and
// repo_path, or kernel_func_name alone, for the bundled kernels.
struct FunctionKernel {
    std::string func_name;      // "add"
    std::string target_module;  // "my_pkg.math_ops"
    FunctionImplementation func_impl{};
    std::shared_ptr<FunctionRepository> repo{};
    std::string repo_id{};
    std::optional<KernelVersion> version{};
    std::string revision{};
    std::filesystem::path repo_path{};
    std::string package_name{};
    std::string kernel_func_name{};  // function or layer of the kernel; empty: func_name
    std::string device{};            // empty: every device
    std::string mode{};              // like a layer's
    std::filesystem::path lockfile{};
};

// Replaces a formula wherever a model computes it, whatever its classes and functions are called;
// sources as for a function. A formula is a Python function in TorchScript's subset, with the
// parameters and results of its replacement.
struct PatternKernel {
    std::string name;                    // "add_rms_norm"
    std::vector<std::string> pattern{};  // "formulas.py:add_rms_norm"; several are of one file
    FunctionImplementation func_impl{};
    std::shared_ptr<FunctionRepository> repo{};
    std::string repo_id{};
    std::optional<KernelVersion> version{};
    std::string revision{};
    std::filesystem::path repo_path{};
    std::string package_name{};
    std::string kernel_func_name{};  // function or layer of the kernel; empty: name
    std::string device{};            // empty: every device
    std::string mode{};              // like a layer's
    std::filesystem::path lockfile{};
};

// Registrations as data: the tables of a manifest, or built in code.
struct TWINKLE_API Config {
    std::vector<LayerKernel> layers{};
    std::vector<FunctionKernel> functions{};
    std::vector<PatternKernel> patterns{};  // the first one that matches a place gets it
    std::vector<std::string> trust{};       // repositories, as in a manifest
    std::vector<std::string> notes{};       // parts of a file that this version cannot use

    // Reads a twinkle.toml, a pyproject.toml or the same keys as JSON, with its includes and
    // presets; the lock beside it applies. Throws Error(malformed | not_found).
    static Config load(const std::filesystem::path& file);
    // The bindings of an installed preset: "transformers".
    static Config preset(const std::string& name);
};

// A request for a kernel that is not in the cache.
struct WantedKernel {
    std::string repo_id{};
    std::optional<KernelVersion> version{};
    std::string revision{};
    std::string target{};              // "torch=2.13,backend=cpu,…": this process
    std::string user_agent{};          // this call's addition to the client's
    std::vector<std::string> trust{};  // likewise: what the registered configs trust
};
struct FoundKernel {
    std::string commit;
    std::filesystem::path folder;  // the build that fits
};
struct HubAccess {
    std::function<FoundKernel(const WantedKernel&)> get{};
    std::function<bool(const WantedKernel&)> has{};
};

// A set of registrations. Programs use the one of the process, through the functions below, or make
// their own and name it in the options.
class TWINKLE_API Registry {
public:
    Registry();
    ~Registry();
    Registry(const Registry&) = delete;
    Registry& operator=(const Registry&) = delete;

    static Registry& of_process();

    // Replaces the entry of the same name, device, range, mode and classes. Throws
    // Error(malformed): an unknown device or mode, an empty range, a version beside a revision.
    void register_layer_kernel(LayerKernel layer);
    // Full class name without mangling ("transformers.models.qwen2.modeling_qwen2.Qwen2MLP"), or a
    // glob. If two calls bind one class, here or by `classes`, the later one wins; with a
    // condition, where it holds. Within one Config the first wins, as in a manifest.
    void register_external_layer(const std::string& class_name, const std::string& kernel_name,
                                 InstanceCondition condition = {});
    // Replaces the entry of the same module, name, device and mode. Throws Error(malformed): no
    // source or several, an unknown device or mode.
    void register_function_kernel(FunctionKernel function);
    // Replaces the entry of the same name, device and mode. Reads the file of the formulas. Throws
    // Error(malformed | not_found).
    void register_pattern_kernel(PatternKernel pattern);
    // Replaces the entry of the same name, device and range, in all modes. Without
    // `inherit_mapping` everything registered before is dropped.
    void register_kernel_mapping(const KernelMapping& mapping, bool inherit_mapping = true);
    void register_kernels(const Config& config);
    // Sets the lock (twinkle.lock or kernels.lock) that resolves versions; empty: none.
    void use_lock(std::filesystem::path lockfile);
    void set_hub(HubAccess access);
    // Removes all registrations and the lock; access to the Hub stays.
    void clear();

    struct State;
    const State& state() const { return *state_; }

private:
    std::unique_ptr<State> state_;
};

TWINKLE_API void register_layer_kernel(LayerKernel layer);
TWINKLE_API void register_external_layer(const std::string& class_name,
                                         const std::string& kernel_name,
                                         InstanceCondition condition = {});
TWINKLE_API void register_function_kernel(FunctionKernel function);
TWINKLE_API void register_pattern_kernel(PatternKernel pattern);
TWINKLE_API void register_kernel_mapping(const KernelMapping& mapping, bool inherit_mapping = true);
TWINKLE_API void register_kernels(const Config& config);

// Lets kernels be downloaded, as in Python: with a twinkle::hub::Client (twinkle/hub.h,
// libtwinkle-hub), or anything with its Request, get() and has().
template <class Client>
void set_hub_client(Client client, Registry& registry = Registry::of_process()) {
    auto shared = std::make_shared<Client>(std::move(client));
    const auto request = [](const WantedKernel& wanted) {
        typename Client::Request made{.version = wanted.version,
                                      .revision = wanted.revision,
                                      .target = wanted.target,
                                      .user_agent = wanted.user_agent};
        if constexpr (requires { made.trust; }) {
            made.trust = wanted.trust;
        }
        return made;
    };
    registry.set_hub({.get = [=](const WantedKernel& wanted) -> FoundKernel {
                          const auto found = shared->get(wanted.repo_id, request(wanted));
                          return {found.front().commit, found.front().folder};
                      },
                      .has =
                          [=](const WantedKernel& wanted) {
                              return shared->has(wanted.repo_id, request(wanted));
                          }});
}

// Applies a mapping on this thread for its lifetime. Scopes nest, and end in the reverse order.
class TWINKLE_API MappingScope {
public:
    MappingScope(KernelMapping mapping, bool inherit_mapping);
    ~MappingScope();
    MappingScope(const MappingScope&) = delete;
    MappingScope& operator=(const MappingScope&) = delete;
};

// Extends the registrations for the lifetime of the result; without `inherit_mapping` only
// `mapping` applies.
[[nodiscard]] inline MappingScope use_kernel_mapping(KernelMapping mapping,
                                                     bool inherit_mapping = true) {
    return {std::move(mapping), inherit_mapping};
}

// true: all cases but cannot-load; false: none; or a list of cases.
struct UseFallback {
    FallbackSet cases;

    UseFallback(bool yes)  // NOLINT(google-explicit-constructor)
        : cases(yes ? default_fallbacks() : FallbackSet{}) {}
    UseFallback(FallbackSet some)  // NOLINT(google-explicit-constructor)
        : cases(std::move(some)) {}
};

struct ModelOptions {
    std::optional<std::string> mode{};    // none: training if a module of the model is in training
    std::optional<std::string> device{};  // none: that of the first parameter
    std::optional<std::string> dtype{};   // as in KernelizeOptions: converted to it first
    UseFallback use_fallback = true;
    bool strict = false;  // a site that is bound but kept is Error(refused)
    // The older way to say the mode; contradicting it is Error(malformed).
    std::optional<bool> needs_backward{};
    std::optional<bool> needs_torch_compile{};
    std::vector<std::string> only{};  // globs over sites; empty: all
    std::vector<std::string> exclude{};
    bool load_kernels = true;            // as in KernelizeOptions
    const Registry* registry = nullptr;  // none: that of the process
    // Inputs of forward: they prove how to replace functions that a trace has inlined.
    std::vector<c10::IValue> inputs{};
};

// The part of them that kernelize takes with a mapping, too.
TWINKLE_API KernelizeOptions kernelize_options(const ModelOptions& options);

// Without a model: registered functions are replaced in every model that twinkle::load, or
// kernelize with a mapping, sees from then on; those reports name them. Calling it with nothing
// registered ends that. torch::jit::load is not seen.
TWINKLE_API Report kernelize_model(std::nullopt_t no_model, const ModelOptions& options = {});

struct FunctionOptions {
    std::string target_module{};          // only functions of this module; empty: all
    std::string func_name{};              // only functions of this name; empty: all
    std::optional<std::string> device{};  // like a model's
    std::optional<std::string> mode{};
    UseFallback use_fallback = true;
    bool strict = false;  // a registration that replaces nothing is Error(refused)
    const Registry* registry = nullptr;
    std::vector<c10::IValue> inputs{};  // like a model's
};

// Applies the functions alone, in place. Returns "module.function" for each function with a
// replaced call, sorted.
TWINKLE_API std::vector<std::string> apply_function_kernel(torch::jit::Module& model,
                                                           const FunctionOptions& options = {});

// Works in place. Errors as with a mapping (kernelize.h); not_found: a kernel that is not on this
// machine, with what to do, unless cannot-load is a fallback.
TWINKLE_API Report kernelize_model(torch::jit::Module& model, const ModelOptions& options = {});
inline Report kernelize(torch::jit::Module& model, const ModelOptions& options) {
    return kernelize_model(model, options);
}

}  // namespace twinkle
