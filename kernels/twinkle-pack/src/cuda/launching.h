#pragma once
// Starts kernels. Without nvcc, tests/pack/on_host/on_host.h runs them.

#include "cuda/card.h"

#ifdef __CUDACC__

#include <type_traits>

namespace twinkle_pack::cuda {

struct Grid {
    uint64_t x = 1, y = 1;
    unsigned shared_bytes = 0;  // of each block's shared_memory()
};

// More than what every GPU allows must be asked for.
inline void allow_shared(const void* kernel, unsigned bytes) {
    if (bytes > 48 << 10)
        check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(bytes)));
}

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
    allow_shared(reinterpret_cast<const void*>(kernel), grid.shared_bytes);
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
    config.dynamicSmemBytes = grid.shared_bytes;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = attributes;
    config.numAttrs = count;
    check_cuda(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), pointers));
}

// How many clusters of such blocks the current GPU runs at once; 0: it cannot.
template <class... Parameters>
int clusters_at_once(const Card& card, void (*function)(Parameters...), unsigned threads,
                     unsigned shared_bytes, unsigned cluster) {
    if (cluster > card.cluster_blocks) return 0;
    const void* const kernel = reinterpret_cast<const void*>(function);
    allow_shared(kernel, shared_bytes);
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(cluster);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
    int count = 0;
    check_cuda(cudaOccupancyMaxActiveClusters(&count, kernel, &config));
    return count;
}

}  // namespace twinkle_pack::cuda

#else
#include "on_host.h"
#endif
