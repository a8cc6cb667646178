#include "hub/file_hasher.h"

#include <algorithm>

namespace twinkle::hub {
namespace {

constexpr std::size_t piece = 256 << 10;  // stays in the second-level cache
constexpr unsigned most_threads = 4;

}  // namespace

class FileHasher::Task {
public:
    Task(const cache::PartialFile& partial, cache::HashKind kind, Finished done)
        : file(partial), hasher(kind, partial.size()), finished(std::move(done)) {}

    const cache::PartialFile& file;
    cache::ContentHasher hasher;
    Finished finished;
    std::uint64_t front = 0;
    std::uint64_t hashed = 0;
    bool busy = false;
    bool dropped = false;
};

FileHasher::~FileHasher() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

FileHasher::Handle FileHasher::add(const cache::PartialFile& file, cache::HashKind kind,
                                   Finished finished) {
    auto task = std::make_shared<Task>(file, kind, std::move(finished));
    const std::lock_guard lock(mutex_);
    tasks_.push_back(task);
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    if (threads_.size() <
        std::min({tasks_.size(), std::size_t{cores}, std::size_t{most_threads}})) {
        threads_.emplace_back([this] { work(); });
    }
    return task;
}

void FileHasher::advance(const Handle& task, std::uint64_t front) {
    {
        const std::lock_guard lock(mutex_);
        // Does not wake a thread for every packet.
        const bool little = front - task->front < piece && front < task->file.size();
        if (little || front == task->front) {
            return;
        }
        task->front = front;
    }
    changed_.notify_one();
}

void FileHasher::drop(const Handle& task) {
    std::unique_lock lock(mutex_);
    task->dropped = true;
    std::erase(tasks_, task);
    changed_.wait(lock, [&] { return !task->busy; });
}

FileHasher::Handle FileHasher::next() {
    const auto ready = std::find_if(tasks_.begin(), tasks_.end(), [](const Handle& task) {
        return !task->busy && (task->hashed < task->front || task->front == task->file.size());
    });
    return ready == tasks_.end() ? nullptr : *ready;
}

void FileHasher::work() {
    const auto buffer = std::make_unique<char[]>(piece);
    std::unique_lock lock(mutex_);
    for (;;) {
        Handle task;
        changed_.wait(lock, [&] { return closing_ || (task = next()) != nullptr; });
        if (closing_) {
            return;
        }
        task->busy = true;
        std::exception_ptr error;
        while (!error && !closing_ && !task->dropped && task->hashed < task->front) {
            const std::uint64_t offset = task->hashed;
            const auto size =
                static_cast<std::size_t>(std::min<std::uint64_t>(piece, task->front - offset));
            lock.unlock();
            try {
                task->file.read(offset, buffer.get(), size);
                task->hasher.update({buffer.get(), size});
            } catch (...) {
                error = std::current_exception();
            }
            lock.lock();
            task->hashed += size;
        }
        const bool done = !task->dropped && (error || task->hashed == task->file.size());
        if (done) {
            std::erase(tasks_, task);
            lock.unlock();
            task->finished(error ? "" : task->hasher.finish_hex(), error);
            lock.lock();
        }
        task->busy = false;
        changed_.notify_all();
    }
}

}  // namespace twinkle::hub
