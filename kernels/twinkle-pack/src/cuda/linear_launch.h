#pragma once
// How the kernels of linear layers are launched: as many clusters of blocks as run at once, of
// which each has outputs of its own.

#include <algorithm>
#include <stdexcept>

#include "cuda/launching.h"
#include "cuda/linear_shape.h"
#include "cuda/pack.h"

namespace twinkle_pack::cuda {
namespace {

// The blocks that share the inner dimension (a power of two, given by its bits), and for each
// multiprocessor at once; the bytes of each row that are brought to the cache early.
struct Layout {
    uint32_t cluster_bits, blocks, early_bytes;
};

// For up to so many rows and outputs. `launch` is null where LibTorch's own is as fast.
struct Way {
    int64_t rows, outputs;
    void (*launch)(const LinearArguments& given, const Layout& layout, const Card& card,
                   void* stream);
    Layout layout;
};

struct Ways {
    const Way* first;
    int count;

    // The first that fits; null: none, or LibTorch's own.
    const Way* of(int64_t of_rows, int64_t of_outputs) const {
        for (const Way* way = first; way != first + count; ++way)
            if (of_rows <= way->rows && of_outputs <= way->outputs)
                return way->launch ? way : nullptr;
        return nullptr;
    }
};

constexpr int64_t any = INT64_MAX;

template <class Shape>
void launch_tiles(void (*kernel)(LinearArguments), const LinearArguments& given,
                  const Layout& layout, const Card& card, void* stream) {
    LinearArguments a = given;
    const unsigned cluster = 1u << layout.cluster_bits;
    const unsigned shared = Shape::shared_bytes(cluster > 1);
    a.cluster_bits = layout.cluster_bits;
    a.early_bytes = card.early ? layout.early_bytes : 0;
    a.clusters = card.multiprocessors * layout.blocks / cluster;
    if (cluster > 1)  // which must lie near each other, so that some multiprocessors may be left
        a.clusters = std::min(a.clusters, static_cast<uint32_t>(clusters_at_once(
                                              card, kernel, Shape::threads, shared, cluster)));
    if (a.clusters == 0) throw std::logic_error("twinkle-pack: no such clusters on this GPU");
    a.clusters = std::min(a.clusters, a.outputs);
    launch_early(stream, card, kernel, {uint64_t{a.clusters} * cluster, 1, shared}, Shape::threads,
                 cluster, a);
}

}  // namespace
}  // namespace twinkle_pack::cuda
