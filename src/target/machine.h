#pragma once
// The outside world as far as twinkle's decisions depend on it, behind one interface: tests decide
// for machines that they do not run on.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "target/backend.h"

namespace twinkle::target {

struct Gpu {
    std::string name;
    std::string arch;  // "9.0", "gfx942"
    std::uint64_t memory_bytes = 0;
};

struct CudaDriver {
    Version version;  // the newest CUDA that the driver serves
    std::vector<Gpu> gpus;
};

struct CpuFacts {
    std::string arch;                   // x86_64, aarch64
    std::string model;                  // "AMD EPYC 9B14"
    int cores = 0;                      // that this process may use
    std::vector<std::string> features;  // those that matter to kernels: avx2, avx512f, …; sorted
};

class Machine {
public:
    virtual ~Machine() = default;
    virtual std::optional<std::string> environment(const std::string& name) const = 0;
    // HOME; where it is no absolute path, as services have it, the folder that the system has for
    // the user; "/" without one.
    virtual std::filesystem::path home() const;
    virtual std::filesystem::path executable() const = 0;
    virtual std::string os() const = 0;    // linux
    virtual std::string arch() const = 0;  // x86_64, aarch64
    virtual CpuFacts cpu() const = 0;
    virtual std::optional<Version> glibc() const = 0;
    // Cheap: whether there is a device file of an NVIDIA driver.
    virtual bool may_have_cuda() const = 0;
    // Loads and starts the driver library, which takes tens of milliseconds: only if the answer is
    // needed.
    virtual std::optional<CudaDriver> cuda_driver() const = 0;
    // ROCm devices as the kernel driver lists them.
    virtual std::vector<Gpu> rocm_gpus() const = 0;
};

// A switch in the environment: 1, ON, YES and TRUE in any case, as in huggingface_hub.
bool is_true(std::string_view value);

// The machine that this process runs on.
const Machine& this_machine();

// From now on the driver is queried in a child process. For a process whose own children use the
// GPU: a driver that runs when a process forks does not work in the child.
void probe_driver_in_child();

}  // namespace twinkle::target
