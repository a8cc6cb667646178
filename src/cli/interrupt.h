#pragma once
// Ctrl-C. Without a worker twinkle ends at once with status 130; with one, the signal goes to the
// worker, which cleans up, and a second one kills it.

namespace twinkle::cli {

// `json`: the last words are a JSON error object.
void install_interrupt_handler(bool json);

bool interrupted();

// While it lives, an interrupt is passed on to this program instead of ending twinkle.
class InterruptTarget {
public:
    explicit InterruptTarget(int pid);
    ~InterruptTarget();
    InterruptTarget(const InterruptTarget&) = delete;
    InterruptTarget& operator=(const InterruptTarget&) = delete;
};

// While it lives, an interrupt waits: around the writing of a file, so that no temporary is left.
class InterruptDelay {
public:
    InterruptDelay();
    ~InterruptDelay();
    InterruptDelay(const InterruptDelay&) = delete;
    InterruptDelay& operator=(const InterruptDelay&) = delete;
};

}  // namespace twinkle::cli
