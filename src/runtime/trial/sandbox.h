#pragma once
// Runs kernels and models in a confined child process (child/child_process.h), with limits that fit
// the work.

#include "child/child_process.h"
#include "runtime/trial/shared_memory.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

struct SandboxLimits : child::Limits {
    // Suits work on a model of this size: the larger, the longer one step takes.
    // TWINKLE_SANDBOX_SECONDS sets the silence, where it is given.
    static SandboxLimits for_bytes(std::uint64_t bytes);
    // The same for work on a GPU, without a limit on memory: its driver reserves address space for
    // all there is. Its first kernels take long to load.
    static SandboxLimits for_bytes_on_gpu(std::uint64_t bytes);
    // Suits loading a library: a short time for the whole.
    static SandboxLimits for_loading();

    bool opens_kernels = true;  // those that this process has declared (declared_operators.h)
};

using SandboxOutcome = child::Outcome;
using child::Send;

// A number that a child leaves where its parent finds it, whatever becomes of the child. To leave
// it costs no time that would show in a measurement.
class SharedNumber {
public:
    explicit SharedNumber(int value);
    SharedNumber(const SharedNumber&) = delete;
    SharedNumber& operator=(const SharedNumber&) = delete;

    void leave(int value) const { place_->store(value, std::memory_order_relaxed); }
    int value() const { return place_->load(std::memory_order_relaxed); }

private:
    SharedMemory memory_;
    std::atomic<int>* place_;
};

// From now on this process computes with one thread, and its children with as many as it had: of
// threads that have worked before a fork the child has none, and would wait for them.
void leave_threads_to_children();

// child::run for LibTorch: call it before this process has used a thread pool, or after
// leave_threads_to_children(). Throws Error(refused) where the libraries of declared kernels, which
// have been loaded before, cannot be loaded this time.
SandboxOutcome run_in_sandbox(const SandboxLimits& limits,
                              const std::function<void(const Send& send)>& work,
                              const child::Receive& receive);

// What the system could not withhold from any child so far, each as a sentence for the user.
std::vector<std::string> unconfined_so_far();

}  // namespace twinkle::runtime
