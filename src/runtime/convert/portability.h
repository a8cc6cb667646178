#pragma once
// What a trace has fixed of the machine that it was made on, undone as far as the options ask for
// it, and told where they do not.

#include "twinkle/kernelize.h"

namespace twinkle::runtime {

// Works in place, before anything is replaced. Throws Error(malformed) for an unknown dtype,
// Error(refused) for a conversion that cannot be decided.
void make_portable(torch::jit::Module& model, const KernelizeOptions& options, Report& report);

// What LibTorch calls a device that was named for a model ("cuda", "rocm", "cuda:1"); none: it has
// no such device.
std::optional<torch::Device> torch_device(const std::string& named);

}  // namespace twinkle::runtime
