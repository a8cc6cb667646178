#pragma once
// Locks for tests.

#include "project/lock.h"

namespace twinkle::test {

inline project::Pin version(int number) {
    project::Pin pin;
    pin.version = number;
    return pin;
}
inline project::Pin revision(std::string name) {
    project::Pin pin;
    pin.revision = std::move(name);
    return pin;
}
inline project::Pin release(std::string specifier) {
    project::Pin pin;
    pin.specifier = std::move(specifier);
    return pin;
}

inline project::LockedVariant locked_variant(std::string name, char seed) {
    project::LockedVariant variant;
    variant.name = std::move(name);
    variant.metadata_sha256 = std::string(64, seed);
    variant.files = {{"__init__.py", 20, std::string(40, seed), std::string(64, seed)},
                     {"_ops.abi3.so", 123456, "", std::string(64, seed)},
                     {"metadata.json", 300, std::string(40, seed), std::string(64, seed)},
                     {"sub/é \"x\".py", 0, std::string(40, seed), ""}};
    return variant;
}

inline project::LockedKernel locked_kernel(std::string name, project::Pin pin, std::string ref,
                                           char seed) {
    project::LockedKernel kernel;
    kernel.name = std::move(name);
    kernel.pin = std::move(pin);
    kernel.ref = std::move(ref);
    kernel.commit = std::string(40, seed);
    kernel.variants = {locked_variant("torch-cuda", seed), locked_variant("torch-universal", seed)};
    return kernel;
}

// Two versions side by side, a release, a branch, a dependency and a local kernel.
inline project::Lock sample_lock() {
    project::Lock lock;
    auto user = locked_kernel("acme/user", version(1), "v1", 'a');
    user.variants[0].archs = {"8.0", "9.0+PTX"};
    user.variants[0].dependencies = {{"acme/base", version(2)}, {"acme/base", revision("dev")}};
    lock.set(user);
    lock.set(locked_kernel("acme/base", revision("dev"), "dev", 'b'));
    lock.set(locked_kernel("acme/base", version(2), "v2", 'c'));
    lock.set(locked_kernel("acme/base", version(10), "v10", 'd'));
    lock.set(locked_kernel("acme/old", release(">=0.1,<0.3"), "v0.2.1", 'e'));
    project::LockedKernel local;
    local.name = "mine";
    local.path = "kernels/mine";
    local.variants = {locked_variant(".", 'f')};
    for (auto& file : local.variants[0].files) {
        file.git_sha1.clear();
        file.sha256 = std::string(64, 'f');
    }
    lock.set(local);
    return lock;
}

}  // namespace twinkle::test
