#pragma once
// Splits the normalization of rows: which team, with how many threads, and how much each thread
// holds.

#include "cuda/teams.h"

namespace twinkle_pack::cuda {
namespace {

// The tensors of the rows, in this order: x (residual) result (sum).
template <bool add>
constexpr int row_tensors = add ? 4 : 2;

// A multiprocessor of compute capability 7.5 has no room for two blocks of 576 threads.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr unsigned two_blocks = 1;
#else
constexpr unsigned two_blocks = 2;
#endif

// A team that owns a row loads the weights together with x, to wait less; a lean one loads the
// bias only when it is needed; other teams load both then. The registers saved allow more threads:
// as many as a block can have if at least so many blocks run on a multiprocessor. Measured on an
// H200.
template <Norm norm, class X, class W, bool add>
struct Forward {
    static constexpr bool half = sizeof(X) == 2, wide_weights = sizeof(W) > sizeof(X);
    // Otherwise a lean team would have no more room.
    static constexpr bool has_lean = norm == Norm::layer && !wide_weights && !(half && add);
    template <int held>
    struct Any {
        static constexpr unsigned threads = held != 4 ? 512 : half ? 576 : 704;
        static constexpr unsigned blocks = held <= 2 || (held == 8 && half) ? 1 : two_blocks;
    };
    template <Team team>
    struct Own {
        static constexpr unsigned most_threads() {
            if (team == Team::cluster) return 256;
            if (team == Team::block && (half || has_lean)) return 384;
            return add ? 512 : 576;
        }
        static constexpr unsigned threads = most_threads();
        static constexpr unsigned blocks = team == Team::cluster || wide_weights ? 1 : two_blocks;
    };
    template <Team team, int held>
    using Limits = std::conditional_t<team == Team::any, Any<held>, Own<team>>;
    // Many rows with at most this many vectors are faster with a block per row that is not lean.
    static constexpr uint64_t own_vectors() {
        if (wide_weights) return norm == Norm::rms ? 512 : 0;
        if (has_lean) return 512;
        return half && norm == Norm::rms && !add ? 1024 : Own<Team::block>::threads * 4;
    }

    // How many of a thread's vectors are loaded together with x: of the weight, of the bias, and of
    // the residual as many as there are registers for.
    template <Team team, int held>
    static constexpr int weights = team == Team::any ? 0 : held;
    template <Team team, int held>
    static constexpr int biases = norm == Norm::rms || team == Team::lean ? 0 : weights<team, held>;
    template <Team team, int held>
    static constexpr int residuals = !add                        ? 0
                                     : held < 4                  ? held
                                     : half || team != Team::any ? 4
                                                                 : 2;
};

struct ForwardSplit : Split {
    Team team;
};

// None if `most` threads cannot hold a row.
inline ForwardSplit split_own(Team team, uint64_t rows, uint64_t vectors, unsigned blocks, int held,
                              unsigned most) {
    ForwardSplit split{{}, team};
    const uint64_t threads = threads_for(quotient_up(vectors, blocks), held);
    if (threads > most) return split;
    split.blocks = blocks;
    split.held = held;
    split.threads = static_cast<unsigned>(threads);
    split.lanes = split.threads * blocks;
    split.grid.x = rows * blocks;
    return split;
}

// For few rows: as many threads as one row can keep busy, on several multiprocessors if blocks can
// share it, because none alone loads a long row as fast. 16 blocks are faster than 8 for very long
// rows only, up to 4 of them. `streams`: vectors that are loaded or stored for each of x. Measured
// on an H200.
template <template <Team> class Limits>
ForwardSplit split_few_rows(uint64_t rows, uint64_t vectors, unsigned streams, const Card& card) {
    constexpr unsigned most = Limits<Team::cluster>::threads;  // of 8 blocks' each
    const auto all = static_cast<uint64_t>(card.multiprocessors);
    if (rows <= 4 && rows * most_cluster_blocks <= all && vectors > 2048 && streams > 3 &&
        card.cluster_blocks == most_cluster_blocks) {
        const ForwardSplit split = split_own(Team::cluster, rows, vectors, most_cluster_blocks,
                                             vectors <= 4096 ? 2 : 4, most / 2);
        if (split.held) return split;
    }
    unsigned blocks = 1;
    if (vectors * streams >= 2048)
        while (blocks < card.cluster_blocks && blocks < usual_cluster_blocks &&
               rows * blocks * 2 <= all && vectors / (blocks * 2) >= 64)
            blocks *= 2;
    if (blocks > 1) {
        const uint64_t share = quotient_up(vectors, blocks);
        const int held = share <= 128 ? 1 : share <= 512 ? 2 : 4;
        const ForwardSplit split = split_own(Team::cluster, rows, vectors, blocks, held, most);
        if (split.held) return split;
    }
    const int held = vectors <= 128 ? 1 : vectors <= 512 ? 2 : 4;
    return split_own(Team::block, rows, vectors, 1, held, Limits<Team::block>::threads);
}

// None: the rows are too long for teams that own them, or many rows are faster without.
template <Norm norm, class X, class W, bool add>
ForwardSplit split_own_rows(uint64_t rows, uint64_t vectors, bool many, const Card& card) {
    using With = Forward<norm, X, W, add>;
    constexpr unsigned streams = row_tensors<add> + (norm == Norm::layer ? 2 : 1);
    ForwardSplit split{{}, Team::block};
    if (!many)
        split = split_few_rows<With::template Own>(rows, vectors, streams, card);
    else if (vectors <= With::own_vectors())
        split =
            split_own(Team::block, rows, vectors, 1, 4, With::template Own<Team::block>::threads);
    if (split.held == 0 && With::has_lean)
        split = split_own(Team::lean, rows, vectors, 1, 4, With::template Own<Team::lean>::threads);
    return split;
}

// `full`: everything that a team with its own row loads is present.
template <Norm norm, class X, class W, bool add>
ForwardSplit split_forward(const RowShape<row_tensors<add>>& shape, uint64_t vectors, bool full,
                           const Card& card) {
    using With = Forward<norm, X, W, add>;
    const auto rows = static_cast<uint64_t>(shape.rows);
    const bool many = are_many(rows, card);
    if (are_short(vectors, many)) return {split_short_rows(rows, vectors, many), Team::any};
    if (full && shape.used <= 1) {
        const ForwardSplit own = split_own_rows<norm, X, W, add>(rows, vectors, many, card);
        if (own.held) return own;
    }
    return {split_long_rows<With::template Any, 4, 8>(rows, vectors), Team::any};
}

}  // namespace
}  // namespace twinkle_pack::cuda
