// The pack's linear layers for bench/gpu_linear_bench.py, which loads this by ctypes.
#include <cstdio>
#include <exception>

#include "cuda/linear.h"

extern "C" {

// `dtype` as twinkle_pack::DType. 1: launched; 0: LibTorch's own is as fast; -1: failed.
int linear(int dtype, const void* x, const void* weight, const void* bias, void* y, int64_t rows,
           int64_t outputs, int64_t inner, void* stream, int device) {
    const twinkle_pack::cuda::LinearLayer linear{
        static_cast<twinkle_pack::DType>(dtype), x, weight, bias, y, rows, outputs, inner};
    try {
        if (!twinkle_pack::cuda::serves(linear, device)) return 0;
        twinkle_pack::cuda::launch_linear(linear, {stream, device, nullptr});
        return 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return -1;
    }
}
}
