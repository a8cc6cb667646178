#pragma once
// A model whose runs are replayed as CUDA graphs, one for each shape of its inputs: a replay is one
// launch for the whole model, so that small batches are not bound by launches. Everything else runs
// as it would without, and statistics() says why.
//
//   twinkle::GraphedModel model(twinkle::load("fast.pt", {.device = torch::kCUDA}));
//   c10::IValue logits = model.forward({tokens});
//
// Shapes, dtypes, devices: any. A graph belongs to the dtypes, sizes, strides and device of all
// tensors among the inputs (also in lists, tuples and dicts), and to the values of all others: a
// number that changes is another graph. It is captured at the second use of such inputs, or when
// prepare() asks for it: the model runs on copies of the inputs (warm_up times, on a stream of its
// own), is captured, and the first replay is compared with those runs. Inputs are copied into the
// graph's own, on the caller's current stream, and so are results. Random numbers are never
// captured.
//
// What runs plainly: shapes that are new; inputs on the CPU or on several devices; where gradients
// would be recorded, autocast is on, or the current stream is being captured already; models in
// training, on several GPUs, that draw random numbers, print, change their attributes or buffers
// (see may_write_state), write into their inputs, return objects, wait for the device (.item(),
// .cpu(), nonzero) or start threads of their own (fork); where memory is short; where LibTorch, or
// libtwinkle, was built without CUDA. An attempt that fails leaves nothing behind: its memory is
// freed, the call runs plainly, and the reason is kept for that shape until clear().
//
// Settings of LibTorch (TF32, attention backends, determinism) are in a graph as they were when it
// was captured: clear() after changing them. So is the device: move a model before, not after.
//
// Thread-safety: any number of threads. Plain runs are at the same time; replays of one
// GraphedModel follow each other on the device, whatever streams they are on. While one thread
// captures, calls of others run plainly. LibTorch's allocator frees no cached memory meanwhile, so
// a thread that runs out of memory in that moment fails where it otherwise might not.
//
// Errors: those of the model, as its forward() throws them. A capture that fails is none.

#include "twinkle/api.h"

#include <torch/script.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace twinkle {

struct GraphOptions {
    // A full cache evicts the least recently used graph, for a shape that is used more than twice
    // as often.
    std::size_t max_graphs = 16;
    // Limit on the device memory of all graphs together, in bytes, without what `join` copies; 0: a
    // quarter of what is free when the first one is captured.
    std::size_t max_bytes = 0;
    int warm_up = 3;  // runs before a capture: libraries initialize themselves in the first
    // Freezes the model for this object; weights stay shared. A model that cannot be frozen runs as
    // it is; calls whose capture failed run with LibTorch's own settings. LibTorch joins linear
    // layers with a bias that read one input, whose weights it copies.
    bool freeze = true;
    // Captures a frozen model with linear layers joined that read one input, also those without a
    // bias and those of the bundled kernels with fewer bits: fewer kernels to wait for. Weights are
    // copied, up to an eighth of them all, or 64 MB; those with fewer bits are moved beside each
    // other instead, where nobody but this object holds the model. Layers stay alone where a kernel
    // of somebody else gets their results, where the model writes into these, and where they are
    // handed out as they are (clone_outputs). What depends on the sizes of tensors alone is
    // computed once for each graph. A capture runs the model once more, to compare.
    bool join = true;
    // Lets LibTorch's fuser join what is left between kernels of a frozen model. It compiles for
    // the first shapes, in the first runs, and profiles every one. Nothing is joined then.
    bool fuse = false;
    // False: results are handed out as they are, and the next replay writes over them.
    bool clone_outputs = true;
    // Capture models that write into their own tensors (a KV cache). They run warm_up + 1 times
    // more often than they are called, on the same inputs: correct if the same inputs write the
    // same values.
    bool may_write_state = false;
};

struct GraphStatistics {
    std::uint64_t replays = 0;
    std::uint64_t captures = 0;
    std::uint64_t plain_runs = 0;
    std::uint64_t evictions = 0;
    std::size_t graphs = 0;         // that there are now
    std::size_t bytes = 0;          // device memory that they hold
    std::size_t joined_layers = 0;  // linear layers that are computed as parts of another
    std::size_t joined_bytes = 0;   // device memory of copies of their weights
    // Why runs were plain, and how many: {"the shape is new", 3}. At most 64 different ones.
    std::map<std::string, std::uint64_t> reasons{};
    std::string not_frozen{};  // why the model could not be frozen; empty: it is, or need not be
};

class TWINKLE_API GraphedModel {
public:
    // The model is shared, not copied. Throws Error(malformed) where it has no forward(), or an
    // option makes no sense.
    explicit GraphedModel(torch::jit::Module model, GraphOptions options = {});
    ~GraphedModel();  // waits for the last replay
    GraphedModel(GraphedModel&&) noexcept;
    GraphedModel& operator=(GraphedModel&&) noexcept;

    c10::IValue forward(std::vector<c10::IValue> inputs, const torch::jit::Kwargs& named = {});

    // Captures for inputs of this kind now, before the first call: runs on copies of them. Returns
    // why it cannot; nullopt: the next forward() replays.
    std::optional<std::string> prepare(std::vector<c10::IValue> inputs,
                                       const torch::jit::Kwargs& named = {});

    GraphStatistics statistics() const;
    // Frees all graphs and forgets every reason.
    void clear();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace twinkle
