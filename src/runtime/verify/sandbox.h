#pragma once
// Runs foreign code in a child process: a kernel that crashes, hangs or eats memory takes down the
// child only.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace twinkle::runtime {

struct SandboxLimits {
    std::chrono::milliseconds silence{60000};  // the child is killed if it says nothing for so long
    std::uint64_t memory = 16ull << 30;  // bytes of address space on top of what it starts with; 0:
                                         // any

    // For work on a model of this size: the larger, the longer one step takes.
    // TWINKLE_SANDBOX_SECONDS sets the silence, where it is given.
    static SandboxLimits for_bytes(std::uint64_t bytes);
    // The same for work on a GPU, without a limit on memory: its driver reserves address space for
    // all there is. Its first kernels take long to load.
    static SandboxLimits for_bytes_on_gpu(std::uint64_t bytes);
};

struct SandboxOutcome {
    bool finished = false;  // the work returned
    std::string why;        // else: "it crashed (segmentation fault)", "it hung: …"
};

// A number that a child leaves where its parent finds it, whatever becomes of the child. To leave
// it costs no time that would show in a measurement.
class NumberLeft {
public:
    explicit NumberLeft(int value);
    ~NumberLeft();
    NumberLeft(const NumberLeft&) = delete;
    NumberLeft& operator=(const NumberLeft&) = delete;

    void leave(int value) const { place_->store(value, std::memory_order_relaxed); }
    int value() const { return place_->load(std::memory_order_relaxed); }

private:
    std::atomic<int>* place_;  // in memory that both processes share
};

// From now on this process computes with one thread, and its children with as many as it had: of
// threads that have worked before a fork the child has none, and would wait for them.
void leave_threads_to_children();

// Forks. `work` runs in the child and may send lines, which `receive` gets here as they come; lines
// are limited in length. The child's own output goes nowhere. Call it before this process has used
// a thread pool, or after leave_threads_to_children().
SandboxOutcome run_in_sandbox(
    const SandboxLimits& limits,
    const std::function<void(const std::function<void(std::string_view line)>& send)>& work,
    const std::function<void(std::string_view line)>& receive);

}  // namespace twinkle::runtime
