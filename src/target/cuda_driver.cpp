#include "target/cuda_driver.h"

#include "base/json.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace twinkle::target {
namespace {

// Constants of the driver's stable C interface.
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

std::string to_text(const CudaDriver& driver) {
    base::Json gpus = base::Json::array();
    for (const Gpu& gpu : driver.gpus) {
        gpus.push_back({gpu.name, gpu.arch, gpu.memory_bytes});
    }
    return base::json_line({{"version", driver.version.text()}, {"gpus", gpus}});
}

std::optional<CudaDriver> from_text(const std::string& text) {
    const base::Json json = base::Json::parse(text, nullptr, false);
    if (!json.is_object()) {
        return std::nullopt;
    }
    CudaDriver driver{parse_version(json.at("version").get<std::string>()).value_or(Version{}), {}};
    for (const base::Json& gpu : json.at("gpus")) {
        driver.gpus.push_back({gpu.at(0).get<std::string>(), gpu.at(1).get<std::string>(),
                               gpu.at(2).get<std::uint64_t>()});
    }
    return driver;
}

std::string read_all(int descriptor) {
    std::string text;
    char buffer[4096];
    for (ssize_t size = 1; size != 0;) {
        size = ::read(descriptor, buffer, sizeof buffer);
        if (size < 0 && errno != EINTR) {
            break;
        }
        text.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    }
    return text;
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

std::optional<CudaDriver> ask_cuda_driver_aside(const std::string& library) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        return std::nullopt;
    }
    const base::UniqueFd read_end(ends[0]);
    base::UniqueFd write_end(ends[1]);
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const auto driver = ask_cuda_driver(library);
        base::write_all(write_end.get(), driver ? to_text(*driver) : "");
        ::_exit(0);
    }
    write_end.reset();
    const std::string text = child > 0 ? read_all(read_end.get()) : "";
    while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return from_text(text);
}

}  // namespace twinkle::target
