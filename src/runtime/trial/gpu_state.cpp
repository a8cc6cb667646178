#include "runtime/trial/gpu_state.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>

namespace twinkle::runtime {

void wait_for(const at::Device& device) {
    const c10::impl::VirtualGuardImpl guard(device.type());
    guard.getStream(device.has_index() ? device : guard.getDevice()).synchronize();
}

bool still_works(const std::optional<at::Device>& device) {
    try {
        return !device || at::ones({1}, *device).item<float>() == 1;
    } catch (const std::exception&) {
        return false;
    }
}

}  // namespace twinkle::runtime
