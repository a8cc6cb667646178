#pragma once
// Runs foreign code in a child process: if it crashes, hangs, eats memory, floods its parent or
// reaches for other files, processes or the network, it harms only the child. Its messages are
// untrusted: the child's own code and the foreign code can both write to the pipe.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "child/confinement.h"

namespace twinkle::child {

// Read again after every line that arrives: the receiver may change the time limits.
struct Limits {
    std::chrono::milliseconds silence{60000};  // it is killed if it says nothing for so long …
    std::chrono::milliseconds total{600000};   // … or has not ended after so long; 0: any
    std::uint64_t memory = 16ull << 30;  // bytes of address space on top of what it starts with; 0:
                                         // any
    std::size_t output = 256u << 20;     // bytes of all its lines
    Confinement confinement;
    std::vector<int> descriptors;  // that it may use; all others lead nowhere in the child
    bool keeps_output = false;     // its stdout and stderr are this process's, not /dev/null
};

struct Outcome {
    bool finished = false;                // the work returned
    std::string why;                      // else: "it crashed (segmentation fault)", "it hung: …"
    std::vector<std::string> unconfined;  // limits that the system could not impose
};

using Send = std::function<void(std::string_view line)>;     // in the child
using Receive = std::function<void(std::string_view line)>;  // in the parent

// Forks. `work` runs in the child and may send lines, which `receive` gets here as they come; lines
// are limited in length. The process must have no thread that `work` needs. Throws Error(failed) if
// no child can be started.
Outcome run(const Limits& limits, const std::function<void(const Send& send)>& work,
            const Receive& receive);

}  // namespace twinkle::child
