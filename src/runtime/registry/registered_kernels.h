#pragma once
// Finds the build on this machine for a registration.

#include "project/build_chooser.h"
#include "project/kernel_locator.h"
#include "project/lock.h"
#include "runtime/registry/registrations.h"
#include "twinkle/mapping.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace twinkle::runtime {

class RegisteredKernels {
public:
    // Adds builds and decisions to `mapping`.
    RegisteredKernels(const Registrations& registrations, Mapping& mapping);

    // The layer's candidates, their builds among the mapping's kernels. None: there is no build for
    // any device of this process that the registration allows; a decision says so. Throws Error:
    // the kernel is not on this machine (and cannot be downloaded), has no such layer, breaks a
    // rule, or excludes the mode that it is registered for and the model is kernelized for.
    std::vector<LayerCandidate> candidates(const LayerKernel& layer,
                                           const std::vector<std::string>& classes,
                                           const std::string& mode);

    // The same for a function that is not C++; reads a Python file. Throws Error.
    std::vector<FunctionCandidate> candidates(const FunctionKernel& function,
                                              const std::string& mode);

    // A build for the first of these devices that has one, its dependencies among the mapping's
    // kernels. Throws Error(not_found) if none has.
    const MappedKernel& build(const project::KernelRequest& request,
                              const std::filesystem::path& lockfile,
                              const std::vector<std::string>& devices);

    std::vector<std::string> warnings() const;

private:
    // The tools for locating kernels under one lock.
    struct Place {
        std::unique_ptr<project::Lock> lock;
        std::unique_ptr<project::KernelLocator> locator;
        std::unique_ptr<project::BuildChooser> chooser;
    };
    Place& place_of(const std::filesystem::path& lockfile);
    template <typename Kernel>
    Place& place_for(const Kernel& kernel);

    const Registrations& registrations_;
    Mapping& mapping_;
    project::Manifest manifest_;  // names for folders, and trust; the rest is in the registrations
    std::map<std::filesystem::path, Place> places_;
};

}  // namespace twinkle::runtime
