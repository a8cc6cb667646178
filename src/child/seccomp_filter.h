#pragma once
// seccomp: the system calls that a process may make. The filter holds for this thread and all that
// it starts, for good.

namespace twinkle::child {

struct CallLimits {
    // Sockets of this machine may be made and waited on, but never connected: CUDA's driver opens
    // one of its own.
    bool local_sockets = false;
    // Refuse to empty a file by opening it, for systems whose Landlock does not (before version 3).
    bool deny_truncation = false;
};

// From here on refused with EPERM: new processes and programs, sockets, reading or signalling other
// processes, changes to owners, modes and other properties of files, everything for administrators.
// Threads are allowed. False: the system, or twinkle for this processor, has no such filter, and
// all is as it was. Needs PR_SET_NO_NEW_PRIVS.
bool restrict_calls(const CallLimits& limits);

}  // namespace twinkle::child
