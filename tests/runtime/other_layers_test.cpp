// What runs between samples in the place of a model's other layers.

#include "runtime/verify/other_layers.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <algorithm>

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

// Elements that the largest sum on this thread has read.
std::int64_t summed = 0;  // NOLINT(*-avoid-non-const-global-variables): for a callback

std::int64_t summed_by(const std::function<void()>& work) {
    summed = 0;
    const auto handle = at::addThreadLocalCallback(
        at::RecordFunctionCallback(
            [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
                if (function.name() == std::string("aten::sum")) {
                    summed = std::max(summed, function.inputs()[0].toTensor().numel());
                }
                return nullptr;
            })
            .needsInputs(true)
            .scopes({at::RecordScope::FUNCTION}));
    work();
    at::removeCallback(handle);
    return summed;
}

}  // namespace

TEST_CASE("before a sample each thread has read 2 MiB of other data") {
    const int before = at::get_num_threads();
    for (const int threads : {1, 2}) {
        at::set_num_threads(threads);
        const auto others = runtime::other_layers(at::kCPU);
        CHECK(summed_by(others) * 4 == threads * (std::int64_t{2} << 20));
        CHECK(summed_by(others) * 4 == threads * (std::int64_t{2} << 20));  // and each time
    }
    at::set_num_threads(before);
}

TEST_CASE("a GPU's samples begin with nothing of the kind") {
    CHECK(summed_by(runtime::other_layers(at::Device(at::kCUDA, 0))) == 0);
}
