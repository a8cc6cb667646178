#include "runtime/verify/other_layers.h"

#include <ATen/Parallel.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

namespace twinkle::runtime {

namespace {

constexpr std::int64_t floats_of_thread = std::int64_t{2} << 20 >> 2;  // 2 MiB

}  // namespace

std::function<void()> other_layers(const c10::Device& device) {
    if (!device.is_cpu()) {
        return [] {};
    }
    return [data = at::zeros({at::get_num_threads() * floats_of_thread})] { at::sum(data); };
}

}  // namespace twinkle::runtime
