#include "runtime/model/no_kernel_loading.h"

namespace twinkle::runtime {

namespace {

thread_local int living = 0;

}  // namespace

NoKernelLoading::NoKernelLoading() {
    ++living;
}

NoKernelLoading::~NoKernelLoading() {
    --living;
}

bool NoKernelLoading::asked_for() {
    return living > 0;
}

}  // namespace twinkle::runtime
