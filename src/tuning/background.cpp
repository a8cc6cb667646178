#include "tuning/background.h"

namespace twinkle::tuning {

namespace {
constexpr std::size_t most_waiting = 64;  // each may hold copies of a call's arguments
}  // namespace

Background::~Background() {
    {
        const std::scoped_lock lock(mutex_);
        ends_ = true;
        waiting_.clear();
    }
    changed_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

bool Background::add(const std::string& name, const std::function<std::function<void()>()>& make) {
    {
        const std::scoped_lock lock(mutex_);
        if (names_.size() >= most_waiting || !names_.insert(name).second) {
            return false;
        }
    }
    std::function<void()> run;
    try {
        run = make();
    } catch (...) {
        const std::scoped_lock lock(mutex_);
        names_.erase(name);
        throw;
    }
    const std::scoped_lock lock(mutex_);
    waiting_.push_back({name, std::move(run)});
    if (!thread_.joinable()) {
        thread_ = std::thread([this] { loop(); });
    }
    changed_.notify_all();
    return true;
}

void Background::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return names_.empty() || ends_; });
}

void Background::loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
        if (ends_) {
            return;
        }
        Work work = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        work.run();
        work.run = nullptr;  // its copies go before anybody is told
        lock.lock();
        names_.erase(work.name);
        changed_.notify_all();
    }
}

}  // namespace twinkle::tuning
