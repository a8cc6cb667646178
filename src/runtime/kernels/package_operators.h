#pragma once
// The operators of a kernel's packages: each is registered with LibTorch under the schema that the
// packages state, so that graphs, markers, verification and saved models know it as any other. A
// call goes to the first package that was compiled for its inputs, which are compared with what the
// package says before its code, which compares nothing, sees them.

#include "kernel/compiled_operator.h"
#include "runtime/kernels/package_code.h"

#include <memory>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct OpenedPackage {
    kernel::CompiledOperator op;
    std::string device;  // "cpu", "cuda"
    std::shared_ptr<PackageCode> code;
};

// Registers for the life of the process. The packages of an operator are tried in their order.
void register_packages(const std::string& op_namespace, std::vector<OpenedPackage> packages);

}  // namespace twinkle::runtime
