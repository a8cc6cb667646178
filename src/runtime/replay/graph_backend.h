#pragma once
// What a device does for captured runs. Its CUDA half is a library of its own (src/cuda), so that
// libtwinkle can be loaded into processes that have no more than LibTorch's CPU half.

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace twinkle::runtime {

// A run that can be repeated. Goes away once the device has done with it.
class CapturedRun {
public:
    virtual ~CapturedRun() = default;
    virtual void replay() = 0;  // on the current stream
    virtual std::size_t bytes() const = 0;

    c10::IValue outputs;  // which every replay writes
};

// How a run is captured. All but `warmed` and `replayed` happen on a stream of the lane's own, with
// memory that belongs to the captured run.
struct Recipe {
    std::function<void()> prepare;     // makes the inputs
    std::function<c10::IValue()> run;  // the work; called `warm_up` times, and once to capture it
    int warm_up = 3;
    // After the device has done the last warm-up, and after it has replayed once: what is thrown
    // there ends the attempt.
    std::function<void(const c10::IValue& outputs)> warmed;
    std::function<void(const c10::IValue& outputs)> replayed;
};

// The captured runs of one model on one device. They share what libraries hold for a stream (a
// workspace of cuBLAS), so they may not overlap.
class GraphLane {
public:
    virtual ~GraphLane() = default;
    // Throws what the recipe or LibTorch throws; everything is then as it was before.
    virtual std::unique_ptr<CapturedRun> capture(const Recipe& recipe) = 0;
    // Around every use of a captured run: on the device, uses follow each other.
    virtual void enter() = 0;
    virtual void leave() noexcept = 0;
    virtual std::size_t free_memory() = 0;
    virtual void release_cached_memory() = 0;  // that LibTorch holds and nobody uses
};

class GraphBackend {
public:
    virtual ~GraphBackend() = default;
    virtual at::DeviceType device_type() const = 0;
    virtual bool stream_is_capturing(at::Device device) = 0;  // the caller's current one
    virtual std::unique_ptr<GraphLane> lane(at::Device device) = 0;
};

// The one for CUDA, or why there is none. Opens its library at the first call.
struct FoundBackend {
    GraphBackend* backend = nullptr;
    std::string why_none;
};
FoundBackend cuda_graph_backend();

// What that library exports: GraphBackend* twinkle_cuda_graphs(), for good.
using CudaGraphsFunction = GraphBackend*();
inline constexpr const char* cuda_graphs_symbol = "twinkle_cuda_graphs";
inline constexpr const char* cuda_graphs_library = "libtwinkle_cuda.so";

}  // namespace twinkle::runtime
