#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace twinkle::base {
namespace {

// State that the threads share: the next index, and the first exception.
class Work {
public:
    Work(std::size_t count, const std::function<void(std::size_t)>& work)
        : count_(count), work_(work) {}

    void take_part() {
        for (std::size_t i = next_++; i < count_; i = next_++) {
            try {
                work_(i);
            } catch (...) {
                next_ = count_;
                const std::lock_guard<std::mutex> lock(mutex_);
                if (!failure_) {
                    failure_ = std::current_exception();
                }
            }
        }
    }

    void rethrow() const {
        if (failure_) {
            std::rethrow_exception(failure_);
        }
    }

private:
    const std::size_t count_;
    const std::function<void(std::size_t)>& work_;
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_;
    std::exception_ptr failure_;
};

}  // namespace

void parallel_for(std::size_t count, unsigned threads,
                  const std::function<void(std::size_t)>& work) {
    Work shared(count, work);
    const std::size_t cores =
        threads != 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
    {
        std::vector<std::jthread> others;
        for (std::size_t i = 1; i < std::min(cores, count); ++i) {
            others.emplace_back([&shared] { shared.take_part(); });
        }
        shared.take_part();
    }
    shared.rethrow();
}

}  // namespace twinkle::base
