#pragma once
// Which calls a running program makes, to tune them later: shapes, no data. Arguments and results
// may be tuples and lists of tensors. Kept in the process, at
// most 10,000; what comes after is counted only. Thread-safe.
//
// TWINKLE_RECORD=FILE in the environment of any program that loads models by twinkle::load or the
// preload library, or has executors, notes their calls in that file, for `twinkle tune --from`.

#include "twinkle/api.h"
#include "twinkle/autotune.h"
#include "twinkle/invocation.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace twinkle {

class Executor;

// While one lives, executors of all threads note the first call of every kind, of operations that
// have something to choose. Later ones cost nothing.
class TWINKLE_API recording {
public:
    recording();
    // Also appends them to a file, and the calls of every kernelized model that this program has
    // loaded: at most 10,000 lines, each once, when it has returned without an exception while this
    // lives. Several processes may share a file. Throws Error:
    // failed (it cannot be written), refused (another file is recorded to).
    explicit recording(const std::filesystem::path& file);
    ~recording();
    recording(const recording&) = delete;
    recording& operator=(const recording&) = delete;

private:
    bool to_file_ = false;
};

// Notes an invocation, whether anything is recording or not.
TWINKLE_API void record_invocation(const Invocation& invocation);
// Distinct ones, in the order of their first calls.
TWINKLE_API std::vector<Invocation> get_invocations();
TWINKLE_API std::size_t lost_invocations();  // beyond the limit
TWINKLE_API void clear_invocations();

struct RecordedTuning {
    Invocation invocation;
    Measurement measurement;
    std::string problem{};  // why it was not measured
};
// Tunes the calls of executors that were noted, on tensors of random numbers of the same shapes,
// and lets the selector of `executor` learn it. What record_invocation() has noted alone is no
// call: it has a problem that says so. Throws Error(refused) where the policy says never.
TWINKLE_API std::vector<RecordedTuning> autotune_recorded(const Executor& executor,
                                                          const AutotuneOptions& options = {});

namespace detail {

TWINKLE_API std::uint64_t recordings();  // begun and ended so far
TWINKLE_API bool is_recording();
using Replay = std::function<Measurement(const Executor& executor, const AutotuneOptions& options)>;
TWINKLE_API void record_replay(const Invocation& invocation, Replay replay);

// A tensor without its data.
struct TensorShape {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;  // empty: not strided
    at::ScalarType dtype = at::kFloat;
    c10::Device device = c10::kCPU;
    bool defined = false;
    bool requires_grad = false;
};
TWINKLE_API TensorShape shape_of(const at::Tensor& tensor);
// Holds random numbers; of integers and truth values, zeros: they may be indices.
TWINKLE_API at::Tensor random_like(const TensorShape& shape);

template <class Op, class... Args>
void record_call(const Executor& executor, const Op& op, const Invocation& invocation,
                 const Args&... args);

}  // namespace detail

}  // namespace twinkle
