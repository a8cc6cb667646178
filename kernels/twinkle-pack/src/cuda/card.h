#pragma once
// The GPU's properties that kernel launches depend on. Without nvcc, tests/pack/on_host/on_host.h
// replaces it.

#ifdef __CUDACC__

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace twinkle_pack::cuda {

inline void check_cuda(cudaError_t code) {
    if (code != cudaSuccess)
        throw std::runtime_error(std::string("twinkle-pack: CUDA: ") + cudaGetErrorString(code));
}

// Every GPU with clusters allows 8 blocks; an H100 and an H200 allow 16 to kernels that ask for
// it.
constexpr uint16_t usual_cluster_blocks = 8, most_cluster_blocks = 16;

struct Card {
    uint16_t multiprocessors = 0;
    uint16_t cache_mib = 0;  // L2
    // For kernels compiled for compute capability 9.0 or later, not merely running on it: how many
    // blocks can form a cluster, and whether kernels can begin early.
    uint16_t cluster_blocks = 1;
    bool early = false;
    bool hopper = false;  // compute capability 9.0
};

namespace {

__global__ void compiled_for() {}

// 1 if multiprocessors are too few or too far apart, as in a slice of a GPU.
inline uint16_t ask_cluster_blocks() {
    cudaFuncSetAttribute(compiled_for, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    uint16_t blocks = most_cluster_blocks;
    for (; blocks > 1; blocks /= 2) {
        cudaLaunchAttribute cluster{};
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim = {blocks, 1, 1};
        cudaLaunchConfig_t config{};
        config.gridDim = dim3(blocks);
        config.blockDim = dim3(1024);  // too large for several on a multiprocessor
        config.attrs = &cluster;
        config.numAttrs = 1;
        int at_once = 0;
        if (cudaOccupancyMaxActiveClusters(&at_once, compiled_for, &config) == cudaSuccess &&
            at_once > 0)
            break;
        cudaGetLastError();
    }
    return blocks;
}

inline Card ask_card(int device) {
    Card card;
    cudaFuncAttributes code{};
    int multiprocessors = 0, cache = 0, driver = 0, clusters = 0, major = 0, minor = 0;
    check_cuda(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    check_cuda(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device));
    card.multiprocessors = static_cast<uint16_t>(multiprocessors);
    card.cache_mib = static_cast<uint16_t>(cache >> 20);
    check_cuda(cudaFuncGetAttributes(&code, compiled_for));
    check_cuda(cudaDriverGetVersion(&driver));
    check_cuda(cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, device));
    check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    card.hopper = major == 9 && minor == 0;
    const bool recent = code.ptxVersion >= 90;
    card.early = recent && driver >= 12030;  // older ones cannot capture it
    if (recent && clusters) card.cluster_blocks = ask_cluster_blocks();
    return card;
}

// Queried once for each GPU of the process. `device` must be the current one.
inline Card card(int device) {
    constexpr int most = 64;
    static std::atomic<Card> known[most];
    static_assert(sizeof(Card) == 8, "else atomics need a library");
    if (device >= most) return ask_card(device);
    Card found = known[device].load(std::memory_order_relaxed);
    if (found.multiprocessors) return found;
    found = ask_card(device);
    known[device].store(found, std::memory_order_relaxed);
    return found;
}

}  // namespace

}  // namespace twinkle_pack::cuda

#else
#include "on_host.h"
#endif
