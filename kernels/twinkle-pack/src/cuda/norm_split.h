#pragma once
// Who normalizes the rows: which team, of how many threads, and how much each of them holds.

#include "cuda/teams.h"

namespace twinkle_pack::cuda {
namespace {

// The rows of the tensors in this order: x (residual) result (sum).
template <bool add>
constexpr int row_tensors = add ? 4 : 2;

// A multiprocessor of compute capability 7.5 has no room for two blocks of 576 threads.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr unsigned two_blocks = 1;
#else
constexpr unsigned two_blocks = 2;
#endif

// A team of its own loads the weights together with x, so that less is waited for. Else they come
// from the cache when they are needed, and the registers serve more threads. Limits as measured on
// an H200.
template <class X, class W>
struct Forward {
    template <int held>
    struct Any {
        static constexpr unsigned threads = held == 4 ? 576 : 512;
        // At least, on a multiprocessor.
        static constexpr unsigned blocks =
            held <= 2 || (held == 8 && sizeof(X) == 2) ? 1 : two_blocks;
    };
    template <Team team>
    struct Own {
        static constexpr unsigned threads = team == Team::block ? 384 : 128;
        static constexpr unsigned blocks =
            team == Team::block && sizeof(W) <= sizeof(X) ? two_blocks : 1;
    };
    template <Team team, int held>
    using Limits = std::conditional_t<team == Team::any, Any<held>, Own<team>>;
};

struct ForwardSplit : Split {
    Team team;
};

// None where `most` threads do not hold a row.
inline ForwardSplit split_own(uint64_t rows, uint64_t vectors, unsigned blocks, int held,
                              unsigned most) {
    ForwardSplit split{{}, blocks > 1 ? Team::cluster : Team::block};
    const uint64_t threads = threads_for(quotient_up(vectors, blocks), held);
    if (threads > most) return split;
    split.blocks = blocks;
    split.held = held;
    split.threads = static_cast<unsigned>(threads);
    split.lanes = split.threads * blocks;
    split.grid.x = rows * blocks;
    return split;
}

// Few rows: as many threads as can be busy with one, of several multiprocessors where blocks can
// share it: no single one loads a long row as fast. `streams`: vectors that are loaded or stored
// for each of x. As measured on an H200.
template <template <Team> class Limits>
ForwardSplit split_few_rows(uint64_t rows, uint64_t vectors, unsigned streams, const Card& card) {
    unsigned blocks = 1;
    const auto all = static_cast<uint64_t>(card.multiprocessors);
    if (vectors * streams >= 2048)
        while (blocks < card.cluster_blocks && rows * blocks * 2 <= all &&
               vectors / (blocks * 2) >= 64)
            blocks *= 2;
    if (blocks > 1) {
        const uint64_t share = quotient_up(vectors, blocks);
        const int held = share <= 64 ? 1 : share <= 256 ? 2 : 4;
        const ForwardSplit split =
            split_own(rows, vectors, blocks, held, Limits<Team::cluster>::threads);
        if (split.held) return split;
    }
    const int held = vectors <= 128 ? 1 : vectors <= 512 ? 2 : 4;
    return split_own(rows, vectors, 1, held, Limits<Team::block>::threads);
}

// Many rows of no more than this are faster with the weights at hand, on an H200.
constexpr uint64_t own_vectors(unsigned streams) {
    return streams > 3 ? 1536 : 1024;
}

// `full`: there is all that a team of its own loads.
template <class X, class W, bool add>
ForwardSplit split_forward(const RowShape<row_tensors<add>>& shape, uint64_t vectors,
                           unsigned streams, bool full, const Card& card) {
    using Limits = Forward<X, W>;
    const auto rows = static_cast<uint64_t>(shape.rows);
    const bool many = are_many(rows, card);
    if (are_short(vectors, many)) return {split_short_rows(rows, vectors, many), Team::any};
    if (full && shape.used <= 1) {
        if (many && vectors <= own_vectors(streams))
            return split_own(rows, vectors, 1, 4, Limits::template Own<Team::block>::threads);
        const ForwardSplit few =
            many ? ForwardSplit{}
                 : split_few_rows<Limits::template Own>(rows, vectors, streams, card);
        if (few.held) return few;
    }
    return {split_long_rows<Limits::template Any, 4, 8>(rows, vectors), Team::any};
}

}  // namespace
}  // namespace twinkle_pack::cuda
