#include "target/cuda_driver.h"

#include <dlfcn.h>

#include <memory>

namespace twinkle::target {
namespace {

// From the driver's stable C interface.
constexpr int attribute_major = 75;
constexpr int attribute_minor = 76;

struct Closer {
    void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, Closer>;

template <typename Function>
bool find(const Library& library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library.get(), name));
    return function != nullptr;
}

}  // namespace

std::optional<CudaDriver> ask_cuda_driver(const std::string& file) {
    const Library library(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!library) {
        return std::nullopt;
    }
    int (*init)(unsigned) = nullptr;
    int (*driver_version)(int*) = nullptr;
    int (*count_devices)(int*) = nullptr;
    int (*get_device)(int*, int) = nullptr;
    int (*get_name)(char*, int, int) = nullptr;
    int (*get_attribute)(int*, int, int) = nullptr;
    int (*get_memory)(std::size_t*, int) = nullptr;
    const bool complete =
        find(library, "cuInit", init) && find(library, "cuDriverGetVersion", driver_version) &&
        find(library, "cuDeviceGetCount", count_devices) &&
        find(library, "cuDeviceGet", get_device) && find(library, "cuDeviceGetName", get_name) &&
        find(library, "cuDeviceGetAttribute", get_attribute) &&
        find(library, "cuDeviceTotalMem_v2", get_memory);
    int version = 0;
    int count = 0;
    if (!complete || init(0) != 0 || driver_version(&version) != 0 || count_devices(&count) != 0) {
        return std::nullopt;
    }
    CudaDriver driver{{version / 1000, version % 1000 / 10}, {}};
    for (int index = 0; index < count; ++index) {
        int device = 0, major = 0, minor = 0;
        char name[256] = "";
        std::size_t memory = 0;
        if (get_device(&device, index) != 0 ||
            get_attribute(&major, attribute_major, device) != 0 ||
            get_attribute(&minor, attribute_minor, device) != 0) {
            continue;
        }
        get_name(name, sizeof(name) - 1, device);
        get_memory(&memory, device);
        driver.gpus.push_back({name, Version{major, minor}.text(), memory});
    }
    return driver;
}

}  // namespace twinkle::target
