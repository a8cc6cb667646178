#pragma once
// A device that captures runs. The CUDA implementation is a library of its own (src/cuda), so that
// libtwinkle can be loaded into processes that have only LibTorch's CPU half.

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace twinkle::runtime {

// A run that can be repeated. Destroyed once the device has finished with it.
class CapturedRun {
public:
    virtual ~CapturedRun() = default;
    virtual void replay() = 0;  // on the current stream
    virtual std::size_t bytes() const = 0;

    c10::IValue outputs;  // which every replay writes
};

// How to capture a run. All but `warmed` and `replayed` happens on the lane's own stream, with
// memory that belongs to the captured run.
struct Recipe {
    std::function<void()> prepare;     // makes the inputs
    std::function<c10::IValue()> run;  // the work; called `warm_up` times, and once to capture it
    int warm_up = 3;
    // Called after the device has finished the last warm-up, and after the first replay; an
    // exception ends the attempt.
    std::function<void(const c10::IValue& outputs)> warmed;
    std::function<void(const c10::IValue& outputs)> replayed;
};

// The captured runs of one model on one device. They share the state that libraries keep per stream
// (a workspace of cuBLAS), so they must not overlap.
class GraphLane {
public:
    virtual ~GraphLane() = default;
    // Throws what the recipe or LibTorch throws; everything is then as it was before.
    virtual std::unique_ptr<CapturedRun> capture(const Recipe& recipe) = 0;
    // Bracket every use of a captured run: on the device, uses follow each other.
    virtual void enter() = 0;
    virtual void leave() noexcept = 0;
    virtual void wait() = 0;  // for the work on the caller's current stream
    virtual std::size_t free_memory() = 0;
    virtual void release_cached_memory() = 0;  // that LibTorch holds and nobody uses
};

class GraphBackend {
public:
    virtual ~GraphBackend() = default;
    virtual bool stream_is_capturing(at::Device device) = 0;  // the caller's current one
    virtual std::unique_ptr<GraphLane> lane(at::Device device) = 0;
};

// The CUDA backend, or why there is none. Opens its library at the first call.
struct FoundBackend {
    GraphBackend* backend = nullptr;
    std::string why_none;
};
FoundBackend cuda_graph_backend();
// The file of that library, which a confined child must be able to read.
std::filesystem::path cuda_graphs_file();

// The library's one export: GraphBackend* twinkle_cuda_graphs(). It stays loaded.
using CudaGraphsFunction = GraphBackend*();
inline constexpr const char* cuda_graphs_symbol = "twinkle_cuda_graphs";
inline constexpr const char* cuda_graphs_library = "libtwinkle_cuda.so";

}  // namespace twinkle::runtime
