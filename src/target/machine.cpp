#include "target/machine.h"

#include <gnu/libc-version.h>
#include <pwd.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "target/cpu_info.h"
#include "target/cuda_driver.h"
#include "target/rocm_topology.h"

namespace fs = std::filesystem;

namespace twinkle::target {
namespace {

int usable_cores() {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
        return CPU_COUNT(&set);
    }
    return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

std::atomic<bool> aside = false;

// The home folder that the system has for this user; empty: none.
fs::path home_of_user() {
    std::string buffer(16 << 10, '\0');
    passwd entry{};
    passwd* found = nullptr;
    ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
    return found != nullptr ? found->pw_dir : "";
}

class ThisMachine : public Machine {
public:
    std::optional<std::string> environment(const std::string& name) const override {
        const char* value = std::getenv(name.c_str());
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    }
    fs::path home() const override {
        const fs::path told = environment("HOME").value_or("");
        const fs::path known = told.is_absolute() ? told : home_of_user();
        return known.is_absolute() ? known : fs::path("/");
    }
    fs::path executable() const override {
        std::error_code error;
        return fs::read_symlink("/proc/self/exe", error);
    }
    std::string os() const override { return "linux"; }
    std::string arch() const override {
        utsname name{};
        return ::uname(&name) == 0 ? std::string(name.machine) : std::string("unknown");
    }
    CpuFacts cpu() const override {
        std::ifstream in("/proc/cpuinfo");
        std::stringstream text;
        text << in.rdbuf();
        CpuFacts facts = read_cpuinfo(text.str());
        facts.arch = arch();
        facts.cores = usable_cores();
        return facts;
    }
    std::optional<Version> glibc() const override {
        return parse_version(::gnu_get_libc_version());
    }
    bool may_have_cuda() const override {
        return named_driver() || ::access("/dev/nvidiactl", F_OK) == 0 ||
               ::access("/dev/dxg", F_OK) == 0;
    }
    std::optional<CudaDriver> cuda_driver() const override {
        // Cached: GPUs do not come and go, and starting the driver takes time.
        static const auto driver = (aside ? ask_cuda_driver_aside : ask_cuda_driver)(
            named_driver().value_or("libcuda.so.1"));
        return driver;
    }
    std::vector<Gpu> rocm_gpus() const override {
        return read_rocm_topology("/sys/class/kfd/kfd/topology/nodes");
    }

private:
    // The driver's library, if the loader does not find it.
    std::optional<std::string> named_driver() const {
        auto file = environment("TWINKLE_LIBCUDA");
        return file && !file->empty() ? file : std::nullopt;
    }
};

}  // namespace

fs::path Machine::home() const {
    const fs::path home = environment("HOME").value_or("");
    return home.is_absolute() ? home : fs::path("/");
}

bool is_true(std::string_view value) {
    std::string upper(value);
    std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return upper == "1" || upper == "ON" || upper == "YES" || upper == "TRUE";
}

const Machine& this_machine() {
    static const ThisMachine machine;
    return machine;
}

void probe_driver_in_child() {
    aside = true;
}

}  // namespace twinkle::target
