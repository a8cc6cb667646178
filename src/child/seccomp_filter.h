#pragma once
// seccomp: the system calls that a process may make. The filter applies to this thread and
// everything that it starts, for good.

namespace twinkle::child {

struct CallLimits {
    // Local sockets may be created and polled, but never connected: CUDA's driver opens one of its
    // own.
    bool local_sockets = false;
    // Refuses truncation on open, for systems whose Landlock does not (before version 3).
    bool deny_truncation = false;
};

// From here on these fail with EPERM: new processes and programs, sockets, reading or signalling
// other processes, changes to owners, modes and other properties of files, all administrative
// calls. Threads are allowed. False: the system, or twinkle for this processor, has no such filter,
// and nothing has changed. Needs PR_SET_NO_NEW_PRIVS.
bool restrict_calls(const CallLimits& limits);

}  // namespace twinkle::child
