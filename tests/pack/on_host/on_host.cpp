// The threads of a block, one after another on one CPU thread.
#include "on_host.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace twinkle_pack::cuda {
namespace {

constexpr size_t stack_bytes = 128 << 10;
constexpr unsigned warp_size = 32, most_threads = 1024;

// How many of a group have arrived, and how often all have.
struct Meeting {
    unsigned members = 0, arrived = 0;
    uint64_t times = 0;
};

// Of shared memory, which begins at addresses that 1024 divides.
struct alignas(1024) Kibibyte {
    char bytes[1024];
};

// Products that have been started, of a group of the thread's.
struct StartedProduct {
    std::function<void()> make;
    unsigned group;
};

struct Thread {
    std::unique_ptr<char[]> stack;
    ucontext_t start;
    jmp_buf place;
    Index3 index;
    unsigned block = 0;  // of the cluster
    bool started = false, done = false, waited = false;
    uint64_t exchanges = 0;
    uint64_t passed[2] = {};  // two exchanges in turn: others may not have read the last yet
    std::vector<HostCopy> copies;
    unsigned copy_groups = 0;
    std::vector<StartedProduct> products;
    unsigned product_groups = 0;
};

// The blocks of a cluster; mostly one.
class Cluster {
public:
    void run(unsigned first_block, unsigned threads, Start start, unsigned shared_bytes,
             const std::function<void()>& kernel) {
        // Not numbers: what is read before it is written is seen.
        shared_bytes_ = shared_bytes;
        shared_.resize(start.cluster);
        for (auto& shared : shared_)
            shared.resize((shared_bytes + sizeof(Kibibyte) - 1) / sizeof(Kibibyte)),
                std::memset(static_cast<void*>(shared.data()), 0xff, shared.size() << 10);
        kernel_ = &kernel;
        error_ = nullptr;
        must_wait_ = start.early;
        first_block_ = first_block;
        const unsigned all = threads * start.cluster;
        if (threads_.size() < all) threads_.resize(all);
        cluster_ = {all, 0, 0};
        blocks_.assign(start.cluster, Meeting{threads, 0, 0});
        warps_.assign((all + warp_size - 1) / warp_size, Meeting{});
        for (unsigned i = 0; i < all; ++i) {
            begin(i, threads);
            ++warps_[i / warp_size].members;
        }
        unsigned left = all;
        while (left > 0) {
            moved_ = false;
            for (unsigned warp = 0; warp < warps_.size(); ++warp) left -= run_warp(warp);
            if (!moved_)
                fail(std::make_exception_ptr(
                    std::logic_error("threads wait for others that do not come")));
        }
    }

    void meet_block() { meet(blocks_[threads_[current_]->block]); }
    void meet_cluster() { meet(cluster_); }
    char* shared() { return reinterpret_cast<char*>(shared_[rank()].data()); }
    float* in_block(unsigned rank, float* mine) {
        const auto at = reinterpret_cast<char*>(mine) - shared();
        if (rank >= shared_.size() || at < 0 || at + 16 > static_cast<int64_t>(shared_bytes_))
            throw std::logic_error("stored outside of the cluster's shared memory");
        return reinterpret_cast<float*>(reinterpret_cast<char*>(shared_[rank].data()) + at);
    }

    void check_in_shared(const char* from, unsigned bytes) {
        const auto at = from - shared();
        if (at < 0 || at + bytes > static_cast<int64_t>(shared_bytes_))
            throw std::logic_error("a copy to outside of the shared memory");
    }
    void start_copy(char* to, const char* from, bool there) {
        check_in_shared(to, 16);
        Thread& self = *threads_[current_];
        std::memset(to, 0xff, 16);
        self.copies.push_back({to, from, 16, there, self.copy_groups});
    }
    void end_copies() { ++threads_[current_]->copy_groups; }
    void wait_for_copies(unsigned pending) {
        Thread& self = *threads_[current_];
        const auto arrived = [&](const HostCopy& copy) {
            return copy.group + pending < self.copy_groups;
        };
        for (const HostCopy& copy : self.copies)
            if (arrived(copy)) copy.arrive();
        std::erase_if(self.copies, arrived);
    }
    void start_product(std::function<void()> product) {
        Thread& self = *threads_[current_];
        self.products.push_back({std::move(product), self.product_groups});
    }
    void end_products() { ++threads_[current_]->product_groups; }
    void make_started_products(unsigned pending) {
        Thread& self = *threads_[current_];
        const auto other = std::find_if(self.products.begin(), self.products.end(), [&](auto& one) {
            return one.group + pending >= self.product_groups;
        });
        const std::vector<StartedProduct> done(self.products.begin(), other);
        self.products.erase(self.products.begin(), other);
        for (const StartedProduct& one : done) one.make();
    }
    std::vector<HostCopy> take_copies() { return std::exchange(threads_[current_]->copies, {}); }
    void wait_until(const std::function<bool()>& come) {
        while (!come()) pause();
        moved_ = true;
    }
    void note_progress() { moved_ = true; }

    unsigned rank() const { return threads_[current_]->block; }
    void wait() { threads_[current_]->waited = true; }
    void check_waited() const {
        if (must_wait_ && !threads_[current_]->waited)
            throw std::logic_error("a kernel that was launched early does not wait");
    }

    uint64_t exchange(uint64_t value, unsigned from_lane) {
        Thread& self = *threads_[current_];
        const unsigned first = current_ / warp_size * warp_size, slot = self.exchanges++ % 2;
        self.passed[slot] = value;
        meet(warps_[current_ / warp_size]);
        if (first + from_lane >= cluster_.members)
            throw std::logic_error("a value of a thread that is not there");
        return threads_[first + from_lane]->passed[slot];
    }

private:
    void begin(unsigned i, unsigned threads) {
        if (!threads_[i]) {
            threads_[i] = std::make_unique<Thread>();
            threads_[i]->stack = std::make_unique<char[]>(stack_bytes);
        }
        Thread& thread = *threads_[i];
        thread.index = {i % threads, 0, 0};
        thread.block = i / threads;
        thread.done = thread.waited = false;
        thread.exchanges = 0;
        thread.copies.clear();
        thread.copy_groups = 0;
        thread.products.clear();
        thread.product_groups = 0;
    }

    // The threads of a warp in turns, as long as they meet each other only: theirs are the stacks
    // that the caches hold. How many have come to their ends.
    unsigned run_warp(unsigned warp) {
        unsigned ended = 0;
        const unsigned first = warp * warp_size,
                       last = std::min(first + warp_size, cluster_.members);
        for (uint64_t before = ~uint64_t{0}; before != warps_[warp].times;) {
            before = warps_[warp].times;
            for (unsigned i = first; i < last; ++i)
                if (!threads_[i]->done) {
                    resume(i);
                    if (threads_[i]->done) ++ended, moved_ = true;
                    if (error_) fail(error_);
                }
        }
        return ended;
    }

    [[noreturn]] void fail(std::exception_ptr error) {
        threads_.clear();  // some are in the middle of the kernel
        std::rethrow_exception(std::move(error));
    }

    void resume(unsigned i) {
        Thread& thread = *threads_[i];
        current_ = i;
        threadIdx = thread.index;
        blockIdx.x = first_block_ + thread.block;
        if (_setjmp(scheduler_) != 0) return;
        if (thread.started) _longjmp(thread.place, 1);
        thread.started = true;
        getcontext(&thread.start);
        thread.start.uc_stack.ss_sp = thread.stack.get();
        thread.start.uc_stack.ss_size = stack_bytes;
        thread.start.uc_link = nullptr;
        makecontext(&thread.start, [] { current()->run_kernels(); }, 0);
        setcontext(&thread.start);
    }

    // Without an end: the thread and its stack serve the next kernel, too.
    void run_kernels() {
        for (;;) {
            run_kernel();
            threads_[current_]->done = true;
            pause();
        }
    }

    void run_kernel() {
        try {
            (*kernel_)();
            check_waited();
            if (!threads_[current_]->copies.empty())
                throw std::logic_error("a thread ends before its copies have arrived");
            if (!threads_[current_]->products.empty())
                throw std::logic_error("a thread ends before its products are done");
        } catch (...) {
            error_ = std::current_exception();
        }
    }

    void pause() {
        Thread& thread = *threads_[current_];
        if (_setjmp(thread.place) == 0) _longjmp(scheduler_, 1);
    }

    void meet(Meeting& meeting) {
        const uint64_t before = meeting.times;
        moved_ = true;
        if (++meeting.arrived == meeting.members) {
            meeting.arrived = 0;
            ++meeting.times;
            return;
        }
        while (meeting.times == before) pause();
    }

public:
    static Cluster* current() {
        static thread_local Cluster cluster;
        return &cluster;
    }

private:
    const std::function<void()>* kernel_ = nullptr;
    std::vector<std::unique_ptr<Thread>> threads_;
    std::vector<Meeting> warps_, blocks_;
    Meeting cluster_;
    unsigned current_ = 0, first_block_ = 0;
    bool moved_ = false, must_wait_ = false;
    std::vector<std::vector<Kibibyte>> shared_;  // by block
    unsigned shared_bytes_ = 0;
    std::exception_ptr error_;
    jmp_buf scheduler_;
};

}  // namespace

void __syncthreads() {
    Cluster::current()->meet_block();
}

uint64_t exchange(uint64_t value, unsigned from_lane) {
    return Cluster::current()->exchange(value, from_lane);
}

void wait_for_earlier() {
    Cluster::current()->wait();
}

void check_waited() {
    Cluster::current()->check_waited();
}

unsigned cluster_rank() {
    return Cluster::current()->rank();
}

void meet_cluster() {
    Cluster::current()->meet_cluster();
}

char* shared_memory() {
    return Cluster::current()->shared();
}

void check_in_shared(const void* at, unsigned bytes) {
    Cluster::current()->check_in_shared(static_cast<const char*>(at), bytes);
}

void start_copy(void* to, const void* from, bool there) {
    check_aligned(to);
    check_aligned(from);
    Cluster::current()->start_copy(static_cast<char*>(to), static_cast<const char*>(from), there);
}

void end_copies() {
    Cluster::current()->end_copies();
}

void start_product(std::function<void()> product) {
    Cluster::current()->start_product(std::move(product));
}

void end_products() {
    Cluster::current()->end_products();
}

void make_started_products(unsigned pending) {
    Cluster::current()->make_started_products(pending);
}

std::vector<HostCopy> take_copies() {
    return Cluster::current()->take_copies();
}

void wait_until(const std::function<bool()>& come) {
    Cluster::current()->wait_until(come);
}

void note_progress() {
    Cluster::current()->note_progress();
}

void wait_for_copies(unsigned pending) {
    Cluster::current()->wait_for_copies(pending);
}

void store_in_block(unsigned rank, float* mine, const uint4& value) {
    check_aligned(mine);
    std::memcpy(Cluster::current()->in_block(rank, mine), &value, sizeof value);
}

void run_grid(Grid grid, unsigned threads, Start start, const std::function<void()>& kernel) {
    if (grid.x == 0 || grid.y == 0 || grid.x >= uint64_t{1} << 31 || grid.y > 65535 ||
        threads == 0 || threads > most_threads)
        throw std::logic_error("no such grid");
    if (grid.shared_bytes > most_shared_bytes) throw std::logic_error("no such shared memory");
    if (start.cluster == 0 || start.cluster > most_cluster_blocks || grid.x % start.cluster != 0 ||
        (start.cluster > 1 && threads % warp_size != 0))
        throw std::logic_error("no such cluster");
    gridDim = {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), 1};
    blockDim = {threads, 1, 1};
    for (unsigned y = 0; y < gridDim.y; ++y)
        for (unsigned x = 0; x < gridDim.x; x += start.cluster) {
            blockIdx = {x, y, 0};
            Cluster::current()->run(x, threads, start, grid.shared_bytes, kernel);
        }
}

}  // namespace twinkle_pack::cuda
