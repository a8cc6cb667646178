#include "runtime/registry/registrations.h"

#include "base/file.h"
#include "base/text.h"
#include "project/manifest_sections.h"
#include "project/modes.h"
#include "python/parser.h"
#include "runtime/model/program_function.h"
#include "target/backend.h"
#include "twinkle/error.h"

#include <algorithm>
#include <atomic>

namespace twinkle::runtime {

namespace {

[[noreturn]] void refuse(const LayerKernel& layer, const std::string& what,
                         const std::string& why = "", const std::string& hint = "") {
    throw Error(ErrorCode::malformed,
                {.what = what,
                 .where = "the registered layer \"" + base::printable(layer.kernel_name) + "\"",
                 .why = why,
                 .hint = hint});
}

[[noreturn]] void refuse(const FunctionKernel& function, const std::string& what,
                         const std::string& why = "", const std::string& hint = "") {
    throw Error(ErrorCode::malformed,
                {.what = what,
                 .where = "the registered function \"" + base::printable(function.target_module) +
                          "." + base::printable(function.func_name) + "\"",
                 .why = why,
                 .hint = hint});
}

template <typename Kernel>
void check_repository(const Kernel& layer) {
    if (!layer.repo_id.empty() && !layer.repo_path.empty()) {
        refuse(layer, "it names a repository of the Hub and a folder", "",
               "keep repo_id or repo_path");
    }
    if (layer.version && !layer.revision.empty()) {
        refuse(layer, "a version and a revision are both given", "", "keep one of them");
    }
    if (layer.repo_id.empty() && (layer.version || !layer.revision.empty())) {
        refuse(layer, "a version or revision is for kernels of the Hub", "it has no repo_id", "");
    }
}

// The usual spelling; none: there is no such device.
std::optional<std::string> usual_device(const std::string& device) {
    return device.empty() ? device : target::parse_device(device);
}

std::optional<std::string> usual_mode(const std::string& mode) {
    return mode.empty() ? "fallback" : project::parse_layer_mode(mode);
}

template <typename Kernel>
void normalize_words(Kernel& kernel) {
    const auto device = usual_device(kernel.device);
    if (!device) {
        refuse(kernel, "there is no device \"" + base::printable(kernel.device) + "\"",
               "devices: " + target::device_names());
    }
    const auto mode = usual_mode(kernel.mode);
    if (!mode) {
        refuse(kernel, "there is no mode \"" + base::printable(kernel.mode) + "\"",
               "modes: " + std::string(project::layer_mode_names));
    }
    kernel.device = *device;
    kernel.mode = *mode;
}

bool same_instances(const LayerKernel& a, const LayerKernel& b) {
    return a.classes == b.classes && a.modules == b.modules && a.when == b.when &&
           a.when_submodule == b.when_submodule;
}

bool same_place(const LayerKernel& a, const LayerKernel& b) {
    return a.kernel_name == b.kernel_name && a.device == b.device && a.capability == b.capability;
}

LayerKernel layer_of(const std::string& name, const Device& device, const std::string& mode,
                     const LayerRepository& repository) {
    LayerKernel layer{.kernel_name = name};
    layer.repo_id = repository.repo_id;
    layer.version = repository.version;
    layer.revision = repository.revision;
    layer.repo_path = repository.repo_path;
    layer.package_name = repository.package_name;
    layer.layer_name = repository.layer_name;
    layer.device = device.type;
    layer.capability = device.capability;
    layer.mode = mode;
    layer.lockfile = repository.lockfile;
    return normalized(std::move(layer));
}

}  // namespace

LayerKernel normalized(LayerKernel layer) {
    if (layer.kernel_name.empty()) {
        refuse(layer, "a layer kernel needs a kernel name");
    }
    check_repository(layer);
    normalize_words(layer);
    if (layer.layer_name.empty()) {
        layer.layer_name = layer.kernel_name;
    }
    if (layer.capability) {
        const auto [least, most] = *layer.capability;
        if (least > most) {
            refuse(layer, "its range of capabilities is empty",
                   std::to_string(least) + " is more than " + std::to_string(most));
        }
        if (layer.device != "cuda" && layer.device != "rocm") {
            refuse(layer, "a range of capabilities is for cuda and rocm");
        }
    }
    if (!layer.repo_path.empty()) {
        layer.repo_path = base::absolute_path(layer.repo_path);
    }
    return layer;
}

namespace {

FunctionKernel normalized(FunctionKernel function) {
    if (function.func_name.empty() || function.target_module.empty()) {
        refuse(function, "a function kernel needs func_name and target_module");
    }
    const int sources =
        static_cast<int>(!function.func_impl.empty()) + static_cast<int>(function.repo != nullptr) +
        static_cast<int>(!function.repo_id.empty()) + static_cast<int>(!function.repo_path.empty());
    if (sources > 1 || (sources == 0 && function.kernel_func_name.empty())) {
        refuse(function,
               "exactly one of func_impl, repo, repo_id and repo_path is needed, or "
               "kernel_func_name alone",
               std::to_string(sources) + " are given");
    }
    check_repository(function);
    normalize_words(function);
    if (!function.repo_path.empty()) {
        function.repo_path = base::absolute_path(function.repo_path);
    }
    if (!function.func_impl.text().empty()) {
        project::FunctionBinding named;
        if (!project::set_implementation(named, function.func_impl.text(),
                                         std::filesystem::current_path())) {
            refuse(function, std::string(project::func_impl_forms));
        }
        if (!named.source_file.empty()) {
            base::read_file(named.source_file, "Python file", python::kMaxSourceSize);
            function.func_impl = named.source_file.string() + ":" + named.source_function;
        } else if (!named.package_file.empty()) {
            function.func_impl = "package:" + named.package_file.string();
        }
    }
    return function;
}

bool is_native(const FunctionKernel& function) {
    return function.func_impl.callable().has_value() || function.repo != nullptr;
}

std::string native_name(const FunctionKernel& function) {
    static std::atomic<std::size_t> count{0};
    std::string name = function.target_module + "_" + function.func_name;
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    // Unique to this process: another one must not call its own function of this name instead.
    return name + "_" + process_token() + "_" + std::to_string(++count);
}

}  // namespace

void put(Registrations& to, FunctionKernel function) {
    FunctionKernel wanted = normalized(std::move(function));
    std::erase_if(to.functions, [&](const RegisteredFunction& other) {
        const FunctionKernel& one = other.kernel;
        return one.func_name == wanted.func_name && one.target_module == wanted.target_module &&
               one.device == wanted.device && one.mode == wanted.mode;
    });
    std::string native = is_native(wanted) ? native_name(wanted) : "";
    to.functions.push_back({std::move(wanted), std::move(native)});
}

namespace {

FunctionKernel replacement_of(const PatternKernel& pattern) {
    FunctionKernel function{.func_name = pattern.name, .target_module = "twinkle_patterns"};
    function.func_impl = pattern.func_impl;
    function.repo = pattern.repo;
    function.repo_id = pattern.repo_id;
    function.version = pattern.version;
    function.revision = pattern.revision;
    function.repo_path = pattern.repo_path;
    function.package_name = pattern.package_name;
    function.kernel_func_name = pattern.kernel_func_name;
    function.device = pattern.device;
    function.mode = pattern.mode;
    function.lockfile = pattern.lockfile;
    return normalized(std::move(function));
}

}  // namespace

void put(Registrations& to, const PatternKernel& pattern) {
    RegisteredPattern wanted{"", "", {}, {replacement_of(pattern), ""}};
    if (!project::is_name(pattern.name) || pattern.name.starts_with('_')) {
        refuse(wanted.replacement.kernel,
               "the name of a pattern is an identifier that begins with a letter");
    }
    std::filesystem::path file;
    for (const std::string& text : pattern.pattern) {
        const auto formula = project::parse_formula(text, "/");
        if (!formula || (!file.empty() && formula->first != file)) {
            refuse(wanted.replacement.kernel, std::string(project::pattern_forms));
        }
        file = formula->first;
        wanted.formulas.push_back(formula->second);
    }
    if (file.empty()) {
        refuse(wanted.replacement.kernel, "a pattern kernel needs a formula");
    }
    wanted.source = base::read_file(file, "Python file", python::kMaxSourceSize);
    wanted.file = file.filename().string();
    std::erase_if(to.patterns, [&](const RegisteredPattern& other) {
        const FunctionKernel& one = other.replacement.kernel;
        return other.name() == wanted.name() && one.device == wanted.replacement.kernel.device &&
               one.mode == wanted.replacement.kernel.mode;
    });
    if (is_native(wanted.replacement.kernel)) {
        wanted.replacement.native = native_name(wanted.replacement.kernel);
    }
    to.patterns.push_back(std::move(wanted));
}

void put(Registrations& to, LayerKernel layer) {
    LayerKernel wanted = normalized(std::move(layer));
    std::erase_if(to.layers, [&](const RegisteredLayer& other) {
        return same_place(other.kernel, wanted) && other.kernel.mode == wanted.mode &&
               same_instances(other.kernel, wanted);
    });
    to.layers.push_back({std::move(wanted), to.calls});
}

void put(Registrations& to, ExternalLayer external) {
    std::erase_if(to.external, [&](const ExternalLayer& other) {
        return other.class_name == external.class_name &&
               (!external.condition || other.kernel_name == external.kernel_name);
    });
    external.call = to.calls;
    to.external.push_back(std::move(external));
}

void put(Registrations& to, const KernelMapping& mapping, bool inherit_mapping) {
    std::vector<LayerKernel> added;
    for (const auto& [name, devices] : mapping) {
        for (const auto& [device, modes] : devices) {
            for (const auto& [mode, repository] : modes) {
                added.push_back(layer_of(name, device, mode, repository));
            }
        }
    }
    if (!inherit_mapping) {
        to.layers.clear();
    }
    std::erase_if(to.layers, [&](const RegisteredLayer& other) {
        return std::any_of(added.begin(), added.end(), [&](const LayerKernel& layer) {
            return same_place(other.kernel, layer);
        });
    });
    for (LayerKernel& layer : added) {
        to.layers.push_back({std::move(layer), to.calls});
    }
}

}  // namespace twinkle::runtime
