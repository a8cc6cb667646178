#include "runtime/registry/registrations.h"

#include "base/text.h"
#include "project/modes.h"
#include "target/backend.h"
#include "twinkle/error.h"

#include <algorithm>

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

void check_source(const LayerKernel& layer) {
    if (layer.kernel_name.empty()) {
        refuse(layer, "a layer kernel needs a kernel name");
    }
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

std::string device_of(const LayerKernel& layer) {
    if (layer.device.empty()) {
        return "";
    }
    const auto device = target::parse_device(layer.device);
    if (!device) {
        refuse(layer, "there is no device \"" + base::printable(layer.device) + "\"",
               "devices: " + target::device_names());
    }
    return *device;
}

std::string mode_of(const LayerKernel& layer) {
    if (layer.mode.empty()) {
        return "fallback";
    }
    const auto mode = project::parse_layer_mode(layer.mode);
    if (!mode) {
        refuse(layer, "there is no mode \"" + base::printable(layer.mode) + "\"",
               "modes: " + std::string(project::layer_mode_names));
    }
    return *mode;
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
    check_source(layer);
    layer.device = device_of(layer);
    layer.mode = mode_of(layer);
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
        layer.repo_path = std::filesystem::absolute(layer.repo_path).lexically_normal();
    }
    return layer;
}

void put(Registrations& to, LayerKernel layer) {
    LayerKernel wanted = normalized(std::move(layer));
    std::erase_if(to.layers, [&](const LayerKernel& other) {
        return same_place(other, wanted) && other.mode == wanted.mode &&
               same_instances(other, wanted);
    });
    to.layers.push_back(std::move(wanted));
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
    std::erase_if(to.layers, [&](const LayerKernel& other) {
        return std::any_of(added.begin(), added.end(),
                           [&](const LayerKernel& layer) { return same_place(other, layer); });
    });
    std::move(added.begin(), added.end(), std::back_inserter(to.layers));
}

}  // namespace twinkle::runtime
