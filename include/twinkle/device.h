#pragma once
// Devices as tuning knows them.

#include "twinkle/api.h"

#include <c10/core/Device.h>

#include <string>

namespace twinkle {

// "cpu" or "gpu". Throws Error(malformed) for a device that is neither.
TWINKLE_API std::string device_kind(const c10::Device& device = c10::kCPU);
// "cpu", "cuda" or "rocm": whose code runs there. Throws as device_kind.
TWINKLE_API std::string get_device_platform(const c10::Device& device = c10::kCPU);
// 16 hex digits, equal where measurements may be shared: CPU model, instruction sets and threads of
// LibTorch; or the set of GPUs with driver and CUDA. Whatever the device's index.
TWINKLE_API std::string device_fingerprint(const c10::Device& device = c10::kCPU);

}  // namespace twinkle
