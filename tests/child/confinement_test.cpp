#include "child/confinement.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "catch.h"
#include "child/child_process.h"

using namespace twinkle::child;
namespace fs = std::filesystem;

namespace {

// A folder with an input file, and a file that the child must not read.
class Scene {
public:
    Scene() {
        char name[] = "/tmp/twinkle-confinement-XXXXXX";
        folder_ = ::mkdtemp(name);
        fs::create_directory(folder_ / "inputs");
        std::ofstream(input()) << "input";
        std::ofstream(secret()) << "secret";
        fs::create_symlink(secret(), folder_ / "inputs/link");
        limits.confinement.readable = {folder_ / "inputs"};
    }
    ~Scene() { fs::remove_all(folder_); }
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;

    fs::path input() const { return folder_ / "inputs/input"; }
    fs::path link() const { return folder_ / "inputs/link"; }
    fs::path secret() const { return folder_ / "secret"; }
    fs::path folder() const { return folder_; }

    // By name, whether the attempt succeeded in a confined child.
    std::map<std::string, bool> attempt(
        const std::map<std::string, std::function<bool()>>& attempts) const {
        std::map<std::string, bool> could;
        const auto outcome = run(
            limits,
            [&](const Send& send) {
                for (const auto& [name, doing] : attempts) {
                    send((doing() ? "+" : "-") + name);
                }
            },
            [&](std::string_view line) { could[std::string(line.substr(1))] = line[0] == '+'; });
        CHECK(outcome.finished);
        CHECK(outcome.unconfined.empty());
        return could;
    }

    Limits limits;

private:
    fs::path folder_;
};

bool opens(const fs::path& path, int flags = O_RDONLY) {
    const int file = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
    char byte = 0;
    const bool could =
        file >= 0 && ((flags & O_ACCMODE) != O_RDONLY || ::read(file, &byte, 1) >= 0);
    ::close(file);
    return could;
}

struct Pipe {
    Pipe() { REQUIRE(::pipe(ends) == 0); }
    ~Pipe() {
        ::close(ends[0]);
        ::close(ends[1]);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    int ends[2];
};

// Whether a process, or a group, can be made to get SIGIO.
bool signals_by_file(pid_t owner) {
    const Pipe pipe;
    return ::fcntl(pipe.ends[0], F_SETOWN, owner) == 0;
}

bool dials(int family) {
    const int socket = ::socket(family, SOCK_STREAM, 0);
    ::close(socket);
    return socket >= 0;
}

}  // namespace

TEST_CASE("a confined child reads its inputs and the system's libraries, and computes") {
    const Scene scene;
    const auto could = scene.attempt({
        {"input", [&] { return opens(scene.input()); }},
        {"folder", [&] { return !fs::is_empty(scene.input().parent_path()); }},
        {"library", [] { return ::dlopen("libm.so.6", RTLD_NOW) != nullptr; }},
        {"own entry", [] { return opens("/proc/self/maps"); }},
        {"processor",
         [] { return opens("/proc/cpuinfo") && opens("/sys/devices/system/cpu/online"); }},
        {"null", [] { return opens("/dev/null", O_RDWR) && opens("/dev/urandom"); }},
        {"thread",
         [] {
             int result = 0;
             std::thread([&] { result = 1; }).join();
             return result == 1;
         }},
        {"memory file",
         [] {
             const int file = ::memfd_create("x", MFD_CLOEXEC);
             return ::ftruncate(file, 4096) == 0 && opens("/proc/self/fd/" + std::to_string(file));
         }},
        {"own signal",
         [] { return ::signal(SIGUSR1, SIG_IGN) != SIG_ERR && ::raise(SIGUSR1) == 0; }},
    });
    for (const auto& [name, done] : could) {
        INFO(name);
        CHECK(done);
    }
    CHECK(could.size() == 9);
}

TEST_CASE("a confined child reaches no other file, process or network") {
    const Scene scene;
    const pid_t parent = ::getpid();
    static char memory[] = "the parent's";
    ::setenv("TWINKLE_TEST_SECRET", "in the environment", 1);
    const std::string entry = "/proc/" + std::to_string(parent);
    const auto refused = scene.attempt({
        {"file", [&] { return opens(scene.secret()); }},
        {"through a link", [&] { return opens(scene.link()); }},
        {"another folder", [&] { return opens(scene.folder(), O_RDONLY | O_DIRECTORY); }},
        {"environment of the parent", [&] { return opens(entry + "/environ"); }},
        {"memory of the parent", [&] { return opens(entry + "/mem"); }},
        {"descriptors of the parent", [&] { return opens(entry + "/fd", O_RDONLY | O_DIRECTORY); }},
        {"read memory",
         [&] {
             char copy[16];
             iovec here{copy, 8};
             iovec there{memory, 8};
             return ::process_vm_readv(parent, &here, 1, &there, 1, 0) >= 0;
         }},
        {"write memory",
         [&] {
             char copy[16] = "";
             iovec here{copy, 8};
             iovec there{memory, 8};
             return ::process_vm_writev(parent, &here, 1, &there, 1, 0) >= 0;
         }},
        {"trace", [&] { return ::ptrace(PTRACE_SEIZE, parent, nullptr, nullptr) == 0; }},
        {"open the parent", [&] { return ::syscall(434, parent, 0) >= 0; }},
        {"signal", [&] { return ::kill(parent, 0) == 0; }},
        {"signal all", [&] { return ::kill(0, 0) == 0; }},
        {"write an input", [&] { return opens(scene.input(), O_WRONLY); }},
        {"empty an input", [&] { return opens(scene.input(), O_RDONLY | O_TRUNC); }},
        {"create", [&] { return opens(scene.folder() / "inputs/new", O_WRONLY | O_CREAT); }},
        {"create in /tmp", [&] { return opens("/tmp/twinkle-new", O_WRONLY | O_CREAT); }},
        {"create in shared memory",
         [] { return ::shm_open("/twinkle-test", O_RDWR | O_CREAT, 0600) >= 0; }},
        {"remove", [&] { return ::unlink(scene.input().c_str()) == 0; }},
        {"rename", [&] { return ::rename(scene.input().c_str(), scene.secret().c_str()) == 0; }},
        {"truncate", [&] { return ::truncate(scene.input().c_str(), 0) == 0; }},
        {"mode", [&] { return ::chmod(scene.secret().c_str(), 0666) == 0; }},
        {"owner", [&] { return ::chown(scene.secret().c_str(), 1, 1) == 0; }},
        {"attribute", [&] { return ::setxattr(scene.secret().c_str(), "user.x", "y", 1, 0) == 0; }},
        {"socket", [] { return dials(AF_INET); }},
        {"socket 6", [] { return dials(AF_INET6); }},
        {"local socket", [] { return dials(AF_UNIX); }},
        {"fork",
         [] {
             const pid_t child = ::fork();
             if (child == 0) {
                 ::_exit(0);
             }
             return child > 0;
         }},
        {"shell", [] { return std::system("true") == 0; }},
        {"program", [] { return ::execl("/bin/true", "true", nullptr) == 0; }},
        {"shared memory", [] { return ::shmget(IPC_PRIVATE, 4096, 0600) >= 0; }},
        {"io_uring", [] { return ::syscall(425, 1, nullptr) >= 0 || errno != EPERM; }},
        {"survive the parent", [] { return ::prctl(PR_SET_PDEATHSIG, 0) == 0; }},
        {"be read", [] { return ::prctl(PR_SET_DUMPABLE, 1) == 0; }},
        {"signals from a file", [&] { return signals_by_file(parent); }},
        {"signals from a file by group", [&] { return signals_by_file(-::getpgrp()); }},
        {"which signal",
         [] {
             const Pipe pipe;
             return ::fcntl(pipe.ends[0], F_SETSIG, SIGKILL) == 0;
         }},
        {"type into a terminal", [] { return ::ioctl(0, TIOCSTI, "x") == 0 || errno != EPERM; }},
        {"new namespace", [] { return ::syscall(SYS_unshare, 0x10000000) == 0; }},
    });
    for (const auto& [name, done] : refused) {
        INFO(name);
        CHECK_FALSE(done);
    }
    CHECK(refused.size() == 38);
    CHECK(fs::file_size(scene.input()) == 5);
    CHECK(fs::file_size(scene.secret()) == 6);
    CHECK(std::string(memory) == "the parent's");
}

TEST_CASE("for a GPU's driver local sockets can be made, but not connected") {
    Scene scene;
    scene.limits.confinement.gpu = true;
    const int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const auto path = (scene.folder() / "socket").string();
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    REQUIRE(::bind(listening, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
    REQUIRE(::listen(listening, 1) == 0);
    const auto could = scene.attempt({
        {"make", [] { return dials(AF_UNIX); }},
        {"connect",
         [&] {
             return ::connect(::socket(AF_UNIX, SOCK_STREAM, 0),
                              reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
         }},
        {"network", [] { return dials(AF_INET); }},
        {"name a thread",
         [] {
             return opens("/proc/self/task/" + std::to_string(::getpid()) + "/comm",
                          O_WRONLY | O_TRUNC);
         }},
    });
    ::close(listening);
    CHECK(could.at("make"));
    CHECK(could.at("name a thread"));
    CHECK_FALSE(could.at("connect"));
    CHECK_FALSE(could.at("network"));
}

TEST_CASE("a process that hides has no entry that its user can read") {
    Limits limits;
    limits.confinement.none = true;
    std::vector<std::string> lines;
    const auto outcome = run(
        limits, [](const Send& send) { send(std::to_string(::prctl(PR_GET_DUMPABLE))); },
        [&](std::string_view line) { lines.emplace_back(line); });
    CHECK(outcome.finished);
    CHECK(lines == std::vector<std::string>{"0"});
}
