#pragma once
// Ctrl-C. Without a worker twinkle ends at once with status 130; with one, the signal goes to the
// worker, which cleans up, and a second one kills it. A download is asked to stop, so that its
// files stay consistent; a second interrupt ends it at once.

#include <atomic>

namespace twinkle::cli {

// `json`: the last output is a JSON error object.
void install_interrupt_handler(bool json);

bool interrupted();

// During its lifetime, interrupts are passed on to this program instead of ending twinkle.
class InterruptTarget {
public:
    explicit InterruptTarget(int pid);
    ~InterruptTarget();
    InterruptTarget(const InterruptTarget&) = delete;
    InterruptTarget& operator=(const InterruptTarget&) = delete;
};

// During its lifetime, an interrupt sets a flag that the work checks.
class InterruptFlag {
public:
    InterruptFlag();
    ~InterruptFlag();
    InterruptFlag(const InterruptFlag&) = delete;
    InterruptFlag& operator=(const InterruptFlag&) = delete;

    const std::atomic<bool>& stop() const;
};

// Delays interrupts during its lifetime: used while a file is written, so that no temporary is
// left.
class InterruptDelay {
public:
    InterruptDelay();
    ~InterruptDelay();
    InterruptDelay(const InterruptDelay&) = delete;
    InterruptDelay& operator=(const InterruptDelay&) = delete;
};

}  // namespace twinkle::cli
