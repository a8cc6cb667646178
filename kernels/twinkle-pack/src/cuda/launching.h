#pragma once
// Starts kernels. Without nvcc, tests/pack/on_host/on_host.h runs them.

#include "cuda/card.h"

#ifdef __CUDACC__

#include <type_traits>

namespace twinkle_pack::cuda {

struct Grid {
    uint64_t x = 1, y = 1;
};

template <class... Parameters>
void launch(void* stream, void (*kernel)(Parameters...), Grid grid, unsigned threads,
            std::type_identity_t<Parameters>... parameters) {
    void* pointers[] = {&parameters...};
    check_cuda(cudaLaunchKernel(reinterpret_cast<const void*>(kernel),
                                dim3(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y)),
                                dim3(threads), pointers, 0, static_cast<cudaStream_t>(stream)));
}

// For kernels that wait_for_earlier(). `cluster`: the number of consecutive blocks that form one.
template <class... Parameters>
void launch_early(void* stream, const Card& card, void (*kernel)(Parameters...), Grid grid,
                  unsigned threads, unsigned cluster,
                  std::type_identity_t<Parameters>... parameters) {
    void* pointers[] = {&parameters...};
    cudaLaunchAttribute attributes[2];
    unsigned count = 0;
    if (card.early) {
        attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[count++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > usual_cluster_blocks)
        check_cuda(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                        cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    if (cluster > 1) {
        attributes[count].id = cudaLaunchAttributeClusterDimension;
        attributes[count++].val.clusterDim = {cluster, 1, 1};
    }
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y));
    config.blockDim = dim3(threads);
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = attributes;
    config.numAttrs = count;
    check_cuda(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), pointers));
}

}  // namespace twinkle_pack::cuda

#else
#include "on_host.h"
#endif
