#include "twinkle/record.h"

#include "runtime/tuning/server_record.h"
#include "twinkle/error.h"
#include "twinkle/executor.h"

#include <ATen/ATen.h>

#include <atomic>
#include <map>
#include <mutex>

namespace twinkle {

namespace {

constexpr std::size_t most_invocations = 10'000;

struct Recorded {
    Invocation invocation;
    detail::Replay replay;  // empty: noted by hand
};

struct Recordings {
    std::atomic<int> active = 0;
    std::atomic<std::uint64_t> changes = 0;
    std::mutex mutex;
    std::vector<Recorded> all;
    std::map<std::string, std::size_t> places;  // by key
    std::size_t lost = 0;
};

Recordings& recordings() {
    static auto& all = *new Recordings;  // threads may record while the process ends
    static const bool begun = [] {
        runtime::record_as_environment_says();
        return runtime::is_recorded_to_file();
    }();
    static const int of_environment = begun ? ++all.active : 0;
    static_cast<void>(of_environment);
    return all;
}

void note(const Invocation& invocation, detail::Replay replay) {
    Recordings& here = recordings();
    const std::scoped_lock lock(here.mutex);
    const std::string key = invocation.key();
    if (const auto known = here.places.find(key); known != here.places.end()) {
        Recorded& place = here.all[known->second];
        if (!place.replay) {
            place.replay = std::move(replay);
        }
        return;
    }
    if (here.all.size() >= most_invocations) {
        ++here.lost;
        return;
    }
    here.places.emplace(key, here.all.size());
    here.all.push_back({invocation, std::move(replay)});
    runtime::note_in_record(invocation);
}

}  // namespace

recording::recording() {
    ++recordings().active;
    ++recordings().changes;
}

recording::recording(const std::filesystem::path& file) : to_file_(true) {
    runtime::begin_record(file);
    ++recordings().active;
    ++recordings().changes;
}

recording::~recording() {
    if (to_file_) {
        runtime::end_record();
    }
    --recordings().active;
    ++recordings().changes;
}

void record_invocation(const Invocation& invocation) {
    note(invocation, {});
}

std::vector<Invocation> get_invocations() {
    Recordings& here = recordings();
    const std::scoped_lock lock(here.mutex);
    std::vector<Invocation> invocations;
    for (const Recorded& one : here.all) {
        invocations.push_back(one.invocation);
    }
    return invocations;
}

std::size_t lost_invocations() {
    const std::scoped_lock lock(recordings().mutex);
    return recordings().lost;
}

void clear_invocations() {
    Recordings& here = recordings();
    const std::scoped_lock lock(here.mutex);
    here.all.clear();
    here.places.clear();
    here.lost = 0;
    ++here.changes;
}

std::vector<RecordedTuning> autotune_recorded(const Executor& executor,
                                              const AutotuneOptions& options) {
    std::vector<Recorded> all;
    {
        const std::scoped_lock lock(recordings().mutex);
        all = recordings().all;
    }
    std::vector<RecordedTuning> tuned;
    for (const Recorded& one : all) {
        RecordedTuning& result = tuned.emplace_back(RecordedTuning{one.invocation, {}});
        if (!one.replay) {
            result.problem = "it was noted by hand: there is no call to repeat";
            continue;
        }
        try {
            result.measurement = one.replay(executor, options);
        } catch (const Error& error) {
            if (error.code() == ErrorCode::refused &&
                error.details().why == "its policy says never") {
                throw;
            }
            result.problem = error.what();
        } catch (const std::exception& error) {
            result.problem = error.what();
        }
    }
    return tuned;
}

std::uint64_t detail::recordings() {
    return twinkle::recordings().changes.load(std::memory_order_acquire);
}

bool detail::is_recording() {
    return twinkle::recordings().active.load(std::memory_order_acquire) > 0;
}

void detail::record_replay(const Invocation& invocation, Replay replay) {
    note(invocation, std::move(replay));
}

detail::TensorShape detail::shape_of(const at::Tensor& tensor) {
    TensorShape shape;
    shape.defined = tensor.defined();
    if (shape.defined) {
        shape.sizes = tensor.sizes().vec();
        if (tensor.layout() == c10::kStrided) {
            shape.strides = tensor.strides().vec();
        }
        shape.dtype = tensor.scalar_type();
        shape.device = tensor.device();
        shape.requires_grad = tensor.requires_grad();
    }
    return shape;
}

at::Tensor detail::random_like(const TensorShape& shape) {
    if (!shape.defined) {
        return {};
    }
    const auto options = at::TensorOptions().dtype(shape.dtype).device(shape.device);
    at::Tensor made = shape.strides.size() == shape.sizes.size()
                          ? at::empty_strided(shape.sizes, shape.strides, options)
                          : at::empty(shape.sizes, options);
    const bool numbers = at::isFloatingType(shape.dtype) || at::isComplexType(shape.dtype);
    if (numbers) {
        made.copy_(at::randn(shape.sizes, options.dtype(at::kFloat)));
        made.set_requires_grad(shape.requires_grad);
    } else {
        made.zero_();
    }
    return made;
}

}  // namespace twinkle
