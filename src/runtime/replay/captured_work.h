#pragma once
// Work captured as a graph, for its time: in a model whose runs are replayed a call takes the
// device's time, not the host's launches.

#include "runtime/replay/graph_backend.h"
#include "runtime/verify/contestant.h"

#include <functional>

namespace twinkle::runtime {

// Captures what it is given, on one lane of the device, which is opened when it is first called.
// What it returns throws what the device throws; capturing throws what the work throws, or why it
// cannot be captured.
CaptureWork work_capturer(const std::function<FoundBackend()>& find_backend, at::Device device);

}  // namespace twinkle::runtime
