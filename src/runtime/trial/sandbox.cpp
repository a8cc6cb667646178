#include "runtime/trial/sandbox.h"

#include "runtime/kernels/declared_operators.h"
#include "runtime/kernels/op_library.h"
#include "runtime/trial/patience.h"
#include "twinkle/error.h"

#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <set>

namespace twinkle::runtime {

namespace {

using std::chrono::seconds;

int threads_of_children = 0;  // as many as there are

// The child's line once its kernels are loaded.
constexpr std::string_view opened_line = "\x07";

struct Unconfined {
    std::mutex mutex;
    std::set<std::string> said;
};

Unconfined& all_unconfined() {
    static auto& unconfined = *new Unconfined();
    return unconfined;
}

}  // namespace

SharedNumber::SharedNumber(int value) : memory_(sizeof(std::atomic<int>)) {
    place_ = new (memory_.bytes().data()) std::atomic<int>(value);
}

void leave_threads_to_children() {
    if (threads_of_children == 0) {
        threads_of_children = at::get_num_threads();
        at::set_num_threads(1);
    }
}

SandboxLimits SandboxLimits::for_bytes(std::uint64_t bytes) {
    constexpr std::uint64_t seconds_per_gib = 120;
    constexpr std::uint64_t copies = 8;  // the model in several precisions, and its activations
    constexpr int steps = 60;            // that take as long as a silence may
    SandboxLimits limits;
    limits.silence += seconds(seconds_per_gib * (bytes >> 30));
    limits.silence =
        silence_of_environment().value_or(std::chrono::duration_cast<seconds>(limits.silence));
    limits.total = limits.silence * steps;
    limits.memory = std::max(limits.memory, copies * bytes);
    limits.confinement.gpu = at::CUDAHooksRegistry()->Has("CUDAHooks");
    return limits;
}

SandboxLimits SandboxLimits::for_bytes_on_gpu(std::uint64_t bytes) {
    SandboxLimits limits = for_bytes(bytes);
    limits.memory = 0;
    if (!silence_of_environment()) {
        limits.silence *= 4;
        limits.total *= 4;
    }
    return limits;
}

SandboxLimits SandboxLimits::for_loading() {
    SandboxLimits limits = for_bytes(0);
    limits.total = 2 * limits.silence;
    limits.opens_kernels = false;
    limits.output = 16u << 20;
    return limits;
}

SandboxOutcome run_in_sandbox(const SandboxLimits& limits,
                              const std::function<void(const Send& send)>& work,
                              const child::Receive& receive) {
    bool opened = !limits.opens_kernels || !has_declared_libraries();
    const bool opens = !opened;
    SandboxLimits own_limits = limits;
    own_limits.confinement.readable.push_back(python_stub());
    const SandboxOutcome outcome = child::run(
        own_limits,
        [&](const child::Send& send) {
            if (threads_of_children > 0) {
                at::set_num_threads(threads_of_children);
            }
            if (opens) {
                open_declared_libraries();
                send(opened_line);
            }
            work(send);
        },
        [&](std::string_view line) {
            if (opens && line == opened_line) {
                opened = true;
            } else {
                receive(line);
            }
        });
    if (!opened) {
        throw Error(
            ErrorCode::refused,
            {.what = "the libraries of the kernels cannot be loaded once more",
             .where = "",
             .why = outcome.why.empty()
                        ? "it ended"
                        : outcome.why + ", in a child process, where they had been loaded before",
             .hint = "a kernel misbehaves: leave it out (--exclude), or use another one"});
    }
    Unconfined& unconfined = all_unconfined();
    const std::scoped_lock lock(unconfined.mutex);
    unconfined.said.insert(outcome.unconfined.begin(), outcome.unconfined.end());
    return outcome;
}

std::vector<std::string> unconfined_so_far() {
    Unconfined& unconfined = all_unconfined();
    const std::scoped_lock lock(unconfined.mutex);
    return {unconfined.said.begin(), unconfined.said.end()};
}

}  // namespace twinkle::runtime
