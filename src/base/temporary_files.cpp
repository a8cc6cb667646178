#include "base/temporary_files.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstring>

namespace twinkle::base {
namespace {

// Fixed, and never freed: a handler may read it at any time.
struct Slot {
    enum State : int { free, changing, used };
    std::atomic<int> state{free};
    std::array<char, PATH_MAX> name{};
};
std::array<Slot, 16> slots;

// Calls only async-signal-safe functions.
void end_at_signal(int number) {
    for (const Slot& slot : slots) {
        if (slot.state.load() == Slot::used) {
            ::unlink(slot.name.data());
        }
    }
    std::signal(number, SIG_DFL);
    std::raise(number);
}

}  // namespace

void remember_temporary(const std::filesystem::path& file) {
    const std::string& name = file.native();
    if (name.size() >= PATH_MAX) {
        return;
    }
    for (Slot& slot : slots) {
        int expected = Slot::free;
        if (slot.state.compare_exchange_strong(expected, Slot::changing)) {
            std::memcpy(slot.name.data(), name.c_str(), name.size() + 1);
            slot.state = Slot::used;
            return;
        }
    }
}

void forget_temporary(const std::filesystem::path& file) {
    for (Slot& slot : slots) {
        if (slot.state.load() == Slot::used && file.native() == slot.name.data()) {
            slot.state = Slot::free;
            return;
        }
    }
}

void remove_temporaries_at_signals() {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction before{};
        ::sigaction(number, nullptr, &before);
        if (before.sa_handler != SIG_IGN) {  // nohup, or a shell's background job
            std::signal(number, end_at_signal);
        }
    }
}

}  // namespace twinkle::base
