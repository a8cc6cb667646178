#pragma once
// A machine made of facts, for decisions about machines that do not exist.

#include <map>

#include "target/machine.h"

namespace twinkle::test {

class VirtualMachine : public target::Machine {
public:
    std::map<std::string, std::string> variables;
    std::filesystem::path program = "/opt/twinkle/bin/twinkle";
    std::string cpu_arch = "x86_64";
    bool nvidia = false;
    std::optional<target::CudaDriver> driver;
    std::vector<target::Gpu> amd;
    mutable int driver_asked = 0;

    std::optional<std::string> environment(const std::string& name) const override {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
    }
    std::filesystem::path executable() const override { return program; }
    std::string os() const override { return "linux"; }
    std::string arch() const override { return cpu_arch; }
    target::CpuFacts cpu() const override { return {cpu_arch, "virtual", 4, {"avx2"}}; }
    std::optional<target::Version> glibc() const override { return target::Version{2, 36}; }
    bool may_have_cuda() const override { return nvidia; }
    std::optional<target::CudaDriver> cuda_driver() const override {
        ++driver_asked;
        return driver;
    }
    std::vector<target::Gpu> rocm_gpus() const override { return amd; }
};

}  // namespace twinkle::test
