#include "child/seccomp_filter.h"

#include <asm/ioctls.h>
#include <asm/sockios.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace twinkle::child {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t architecture = 0;
#endif

// Calls newer than the system's headers have the same number on every processor.
constexpr std::uint32_t refused_calls[] = {
    // Other processes: their memory, their descriptors, their end.
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_tkill,
    424 /* pidfd_send_signal */,
    434 /* pidfd_open */,
    438 /* pidfd_getfd */,
    440 /* process_madvise */,
    448 /* process_mrelease */,
    // Memory and messages that processes of one user share by number or name.
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_semget,
    SYS_semop,
    SYS_semctl,
    SYS_semtimedop,
    SYS_mq_open,
    SYS_mq_unlink,
    // New programs and processes; threads use `clone`, which is filtered below.
    SYS_execve,
    SYS_execveat,
    // Calls that could bypass this filter or Landlock.
    425 /* io_uring_setup */,
    426 /* io_uring_enter */,
    427 /* io_uring_register */,
    SYS_userfaultfd,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_fanotify_init,
    // Keys.
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    // Mounts and namespaces.
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_setns,
    SYS_unshare,
    428 /* open_tree */,
    429 /* move_mount */,
    430 /* fsopen */,
    431 /* fsconfig */,
    432 /* fsmount */,
    433 /* fspick */,
    442 /* mount_setattr */,
    // Properties of files, which Landlock does not cover.
    SYS_fchmod,
    SYS_fchmodat,
    452 /* fchmodat2 */,
    SYS_fchown,
    SYS_fchownat,
    SYS_utimensat,
    SYS_truncate,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    463 /* setxattrat */,
    466 /* removexattrat */,
    469 /* file_setattr */,
    // The machine.
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_syslog,
    SYS_acct,
    SYS_quotactl,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
#if defined(__x86_64__)
    SYS_fork,
    SYS_vfork,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_iopl,
    SYS_ioperm,
    SYS_kexec_file_load,
    SYS_modify_ldt,
#endif
};

constexpr std::uint32_t socket_calls[] = {SYS_socket, SYS_bind,    SYS_listen,
                                          SYS_accept, SYS_accept4, SYS_socketpair};
constexpr std::uint32_t connecting_calls[] = {SYS_connect, SYS_sendto, SYS_sendmsg, SYS_sendmmsg};

// A file's owner gets a signal when there is something to read, and a terminal's reader gets
// injected input: either may be another process.
constexpr std::initializer_list<std::uint32_t> signals_by_file{F_SETOWN, F_SETSIG, F_SETOWN_EX};
constexpr std::initializer_list<std::uint32_t> signals_by_device{FIOSETOWN, SIOCSPGRP, TIOCSTI,
                                                                 TIOCLINUX};

class Filter {
public:
    explicit Filter(const CallLimits& limits) {
        load(offsetof(seccomp_data, arch));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0));
        give(SECCOMP_RET_KILL_PROCESS);  // system calls of another architecture mean other things
        load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
        add(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));  // x32
        give(refused(ENOSYS));
#endif
        answer(435, refused(ENOSYS));  // clone3: its flags are out of sight; libc then uses clone
        answer(437, refused(ENOSYS));  // openat2, in the same way
        for (const auto call : refused_calls) {
            answer(call, refused(EPERM));
        }
        for (const auto call : connecting_calls) {
            answer(call, refused(EPERM));
        }
        for (const auto call : socket_calls) {
            limits.local_sockets ? unix_only(call) : answer(call, refused(EPERM));
        }
        threads_only();
        own_process_only();
        own_controls();
        one_of_refused(SYS_fcntl, 1, signals_by_file);
        one_of_refused(SYS_ioctl, 1, signals_by_device);
        if (limits.deny_truncation) {
            no_truncation(SYS_openat, 2);
#if defined(__x86_64__)
            no_truncation(SYS_open, 1);
            answer(SYS_creat, refused(EPERM));
#endif
        }
        give(SECCOMP_RET_ALLOW);
    }

    bool apply() {
        const sock_fprog program{.len = static_cast<unsigned short>(code_.size()),
                                 .filter = code_.data()};
        // SPEC_ALLOW: the mitigation that it turns off would slow the process down and does not
        // help here.
        return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                         &program) == 0;
    }

private:
    static constexpr std::uint32_t refused(int error) {
        return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error) & SECCOMP_RET_DATA);
    }
    static constexpr std::uint32_t argument(unsigned number) {  // its lower half
        return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + number * 8);
    }

    void add(const sock_filter& instruction) { code_.push_back(instruction); }
    void load(std::uint32_t offset) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
    void give(std::uint32_t verdict) { add(BPF_STMT(BPF_RET | BPF_K, verdict)); }

    // The number of the call is loaded before and after each of these.
    void answer(std::uint32_t call, std::uint32_t verdict) {
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
        give(verdict);
    }
    void skip_unless(std::uint32_t call, std::size_t begin) {
        code_[begin] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0,
                                static_cast<std::uint8_t>(code_.size() - begin - 1));
    }

    void unix_only(std::uint32_t call) {
        if (call != SYS_socket && call != SYS_socketpair) {
            return;
        }
        const std::size_t begin = start();
        load(argument(0));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1 /* AF_UNIX */, 1, 0));
        give(refused(EPERM));
        end(call, begin);
    }

    void threads_only() {
        const std::size_t begin = start();
        load(argument(0));
        add(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, CLONE_THREAD | CLONE_VM));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLONE_THREAD | CLONE_VM, 1, 0));
        give(refused(EPERM));
        end(SYS_clone, begin);
    }

    // Allows signals and limits for this process only.
    void own_process_only() {
        const auto own = static_cast<std::uint32_t>(::getpid());
        constexpr std::uint32_t calls[] = {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo,
                                           SYS_rt_tgsigqueueinfo};
        for (const auto call : calls) {
            const std::size_t begin = start();
            load(argument(0));
            add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own, 1, 0));
            give(refused(EPERM));
            end(call, begin);
        }
        const std::size_t begin = start();
        load(argument(0));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own, 2, 0));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0 /* itself */, 1, 0));
        give(refused(EPERM));
        end(SYS_prlimit64, begin);
    }

    // Protects the settings that end this process with its parent and keep others from reading it.
    void own_controls() {
        const std::size_t begin = start();
        load(argument(0));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PDEATHSIG, 2, 0));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_DUMPABLE, 1, 0));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PTRACER, 0, 1));
        give(refused(EPERM));
        end(SYS_prctl, begin);
    }

    void one_of_refused(std::uint32_t call, unsigned number,
                        std::initializer_list<std::uint32_t> values) {
        const std::size_t begin = start();
        load(argument(number));
        for (const auto value : values) {
            answer(value, refused(EPERM));
        }
        end(call, begin);
    }

    void no_truncation(std::uint32_t call, unsigned flags) {
        const std::size_t begin = start();
        load(argument(flags));
        add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TRUNC, 0, 1));
        give(refused(EPERM));
        end(call, begin);
    }

    std::size_t start() {
        code_.push_back({});  // skip_unless, once it is known how far
        return code_.size() - 1;
    }
    void end(std::uint32_t call, std::size_t begin) {
        give(SECCOMP_RET_ALLOW);
        skip_unless(call, begin);
    }

    std::vector<sock_filter> code_;
};

}  // namespace

bool restrict_calls(const CallLimits& limits) {
    return architecture != 0 && Filter(limits).apply();
}

}  // namespace twinkle::child
