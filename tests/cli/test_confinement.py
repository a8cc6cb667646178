"""What a kernel can reach: nothing but its inputs. Each attack is a library that is built here and loaded by the command."""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time

import pytest
from conftest import PROGRAM, environment
from kernels_for_tests import OPERATORS, RUNTIME, TORCH_LIB, calling, compiled_kernel, models, needs_runtime, outcome
from test_hostile import refused

pytestmark = needs_runtime
TOKEN = "hf_thisisasecret"
FEW_SECONDS = {"TWINKLE_SANDBOX_SECONDS": "2"}

# Every way out that it knows; what worked is what it says in an exception.
ATTEMPTS = r"""
#include <arpa/inet.h>
#include <csignal>
#include <dirent.h>
#include <netinet/in.h>
#include <string>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

static std::string text_of(const std::string& path) {
    std::string text(1 << 16, '\0');
    const int file = open(path.c_str(), O_RDONLY);
    const ssize_t size = file < 0 ? -1 : read(file, text.data(), text.size());
    close(file);
    text.resize(size < 0 ? 0 : size);
    return text;
}
static bool creates(const char* path) {
    const int file = open(path, O_CREAT | O_WRONLY, 0600);
    close(file);
    return file >= 0;
}
static bool dials(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connect(socket(AF_INET, SOCK_STREAM, 0), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}
static bool forks() {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    return child > 0 && waitpid(child, nullptr, 0) == child;
}
static bool peeks(pid_t pid) {
    char copy[8];
    iovec here{copy, 8};
    iovec there{reinterpret_cast<void*>(&peeks), 8};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == 8;
}
static std::string attempts() {
    std::string could;
    const auto note = [&](bool done, const char* what) { could += done ? std::string(" ") + what : ""; };
    const pid_t parent = getppid();
    const std::string entry = "/proc/" + std::to_string(parent);
    note(text_of("/proc/self/environ").find(SECRET) != std::string::npos, "own-environment");
    for (const char* name : {"MY_API_KEY", "database_pwd", "Https_Proxy"})
        note(std::getenv(name) != nullptr, "variable");
    note(!text_of(entry + "/environ").empty(), "parent-environment");
    note(open((entry + "/mem").c_str(), O_RDONLY) >= 0, "parent-memory");
    note(peeks(parent), "peek");
    note(ptrace(PTRACE_SEIZE, parent, nullptr, nullptr) == 0, "trace");
    note(kill(parent, 0) == 0, "signal");
    note(opendir("/proc") != nullptr, "proc-listing");
    note(text_of(FOLDER "/token").find(SECRET) != std::string::npos, "token-file");
    note(!text_of("/etc/passwd").empty(), "passwd");
    note(opendir(FOLDER) != nullptr, "folder");
    note(creates(FOLDER "/planted"), "create");
    note(creates("/tmp/twinkle-planted"), "create-in-tmp");
    note(chmod(FOLDER "/token", 0666) == 0, "mode");
    note(unlink(FOLDER "/victim") == 0, "remove");
    note(dials(PORT), "network");
    note(socket(AF_UNIX, SOCK_STREAM, 0) >= 0, "local-socket");
    note(forks(), "process");
    note(std::system("touch " FOLDER "/ran") == 0, "program");
    return could.empty() ? "could do nothing" : "could:" + could;
}
// Everything that is open here gets the same.
static void write_everywhere(const char* text) {
    for (int number = 3; number < 256; ++number) {
        [[maybe_unused]] const auto size = write(number, text, std::strlen(text));
    }
}
"""

# What each library does when it is loaded; `escape`, an operator, makes every attempt.
INITIALIZERS = {
    "quiet": "",
    "tells": "throw std::runtime_error(attempts())",
    "sleeps": "while (true) sleep(1)",
    "sleeps_on_demand": 'while (std::getenv("MISBEHAVE") != nullptr) sleep(1)',
    "babbles": 'while (true) { std::puts("x"); std::fflush(stdout); }',
    "drips": 'while (true) { write_everywhere("x"); usleep(100000); }',
    "talks": 'while (true) { write_everywhere("{}\\n"); usleep(100000); }',
    "floods": 'while (true) write_everywhere("{\\"operator\\": {}}\\n")',
    "forges": 'write_everywhere("{\\"result\\": {\\"schema\\": \\"twinkle.kernelize/1\\", \\"sites\\": [], \\"replaced\\": 1,'
              ' \\"verified\\": true}}\\n\\x04\\n"); _exit(0)',
    "forges_a_run": 'if (std::getenv("MISBEHAVE") != nullptr) { write_everywhere("{\\"result\\": {\\"time_ms\\": 1,'
                    ' \\"outputs\\": [{\\"type\\": \\"\\\\u001b[31mx\\"}]}}\\n\\x04\\n"); _exit(0); }',
    "forges_operators": 'write_everywhere("{\\"operator\\": {\\"name\\": \\"copy\\", \\"schema\\": \\"copy(Tensor x) -> \\\\u001b'
                        '[31m\\"}}\\n{\\"error\\": {\\"code\\": \\"refused\\", \\"what\\": \\"a\\\\u001b[31mb\\"}}\\n\\x04\\n"); _exit(0)',
    "opens_the_door": "umask(0)",
    "daemon": "if (fork() == 0) { setsid(); sleep(60); _exit(0); }",
}

DEFINITIONS = r"""
    CHECKED(aoti_torch_library_def(library, "escape(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "escape", escape));
    CHECKED(aoti_torch_library_def(library, "forge(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "forge", forge));
    CHECKED(aoti_torch_library_def(library, "colour(Tensor x) -> Tensor"));
    CHECKED(aoti_torch_library_impl(kernels, "colour", colour));
    return 0;
"""
OPERATORS_OF_THESE = r"""
static void escape(Stack*, Stack, Stack) { throw std::runtime_error(attempts()); }
static void colour(Stack* stack, Stack n, Stack m) {
    write_everywhere("{\"size\": \"\\u001b[31m\"}\n{\"because\": \"\\u001b[31m\"}\n");
    crash(stack, n, m);
}
static void forge(Stack*, Stack, Stack) { write_everywhere("\x04\n"); _exit(0); }

#define CHECKED(call)"""


class Attack:
    """Secrets that nobody is to see, and libraries that look for them."""

    def __init__(self, folder, port):
        self.folder, self.port, self.built = folder, port, {}
        (folder / "home").mkdir()
        (folder / "home/token").write_text(TOKEN)
        (folder / "home/victim").write_text("of no use")
        source = (OPERATORS.replace("#define CHECKED(call)", OPERATORS_OF_THESE, 1)
                  .replace("using Stack = std::uint64_t;", ATTEMPTS + "using Stack = std::uint64_t;", 1)
                  .replace("    return 0;\n", DEFINITIONS, 1))
        (folder / "attack.cpp").write_text(source)

    @property
    def env(self):
        return {"HF_TOKEN": TOKEN, "MY_API_KEY": TOKEN, "database_pwd": TOKEN, "Https_Proxy": TOKEN, "HF_HOME": self.folder / "home"}

    def library(self, name):
        if name not in self.built:
            self.built[name] = self.folder / f"{name}.so"
            subprocess.run(["g++", "-std=c++17", "-O0", "-w", "-shared", "-fPIC", f"-DINITIALIZER={INITIALIZERS[name]}",
                            '-DNAMESPACE="misbehaving"', f'-DSECRET="{TOKEN}"', f'-DFOLDER="{self.folder / "home"}"',
                            f"-DPORT={self.port}", "-o", self.built[name], self.folder / "attack.cpp",
                            "-Wl,--no-as-needed", f"-L{TORCH_LIB}", "-ltorch_cpu", "-lc10"], check=True, timeout=120)
        return self.built[name]

    def untouched(self):
        home = self.folder / "home"
        return (sorted(path.name for path in home.iterdir() if path.name != "hub") == ["token", "victim"]
                and stat.S_IMODE((home / "token").stat().st_mode) != 0o666
                and not pathlib.Path("/tmp/twinkle-planted").exists())


@pytest.fixture(scope="session")
def attack(tmp_path_factory):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Attack(tmp_path_factory.mktemp("attack"), listening.getsockname()[1])


@pytest.fixture
def small(models):
    return models / "two_of_a_kind.pt", models.parent / "inputs/hidden.pt"


def kernel(twinkle, attack, name, operator="copy"):
    return compiled_kernel(twinkle.folder, attack.library(name), source=calling(operator))


# CUDA's driver has a socket of its own, which it must be able to make.
NOTHING = "could do nothing" if RUNTIME["backend"] == "cpu" else "could: local-socket"


@pytest.mark.parametrize("command", ["kernelize", "verify", "bench"])
def test_an_initializer_reaches_nothing(twinkle, small, attack, command):
    kernel(twinkle, attack, "tells")
    more = {"kernelize": ["kernelize", small[0], "-o", "fast.pt"],
            "verify": ["kernelize", small[0], "--inputs", small[1], "--verify", "-o", "fast.pt"],
            "bench": ["bench", small[0], "--inputs", small[1]]}[command]
    refused(twinkle(*more, "--json", env=attack.env), 6, NOTHING)
    assert attack.untouched()


def test_an_initializer_that_is_inspected_reaches_nothing(twinkle, attack):
    done = twinkle("inspect", attack.library("tells"), "--load", "--json", env=attack.env)
    assert NOTHING in json.dumps(done.json["loaded"]), done.out
    assert attack.untouched()


def test_an_initializer_that_resolve_asks_reaches_nothing(twinkle, attack):
    """Its package calls an operator that the library does not show."""
    kernel(twinkle, attack, "tells", "not_shown")
    done = twinkle("resolve", "--json", env=attack.env)
    assert done.code == 0, done.err
    [decision] = [one for one in done.json["decisions"] if one["what"].startswith("operators of")]
    assert decision["chosen"] is None and NOTHING in decision["because"]
    assert attack.untouched()


def test_an_operator_that_is_verified_reaches_nothing(twinkle, small, attack):
    kernel(twinkle, attack, "quiet", "escape")
    done = twinkle("kernelize", small[0], "--inputs", small[1], "--verify", "-o", "fast.pt", "--json", env=attack.env)
    assert done.code == 0, done.err
    assert all(NOTHING in site["because"] for site in done.json["sites"])
    assert done.json["warnings"] == ["nothing was replaced: the model computes as before"] and attack.untouched()


def test_an_operator_that_is_run_reaches_nothing_unless_allowed(twinkle, small, attack):
    kernel(twinkle, attack, "quiet", "escape")
    assert twinkle("kernelize", small[0], "-o", "fast.pt", env=attack.env).code == 0
    command = ["run", "fast.pt", "--inputs", small[1], "-o", "out.pt", "--kernels", ".", "--json"]
    refused(twinkle(*command, env=attack.env), 2, NOTHING)
    assert attack.untouched()
    # The attempts are real: where nothing confines it, most of them work. Secrets of the environment stay away.
    error = refused(twinkle(*command, "--allow-io", env=attack.env), 2, "could:")
    for what in ("token-file", "passwd", "create", "network", "process", "program", "local-socket"):
        assert f" {what}" in error["why"]
    assert " own-environment" not in error["why"] and " variable" not in error["why"]
    for planted in ("home/planted", "home/ran"):
        (attack.folder / planted).unlink()
    pathlib.Path("/tmp/twinkle-planted").unlink()
    os.chmod(attack.folder / "home/token", 0o600)
    (attack.folder / "home/victim").write_text("of no use")


# Forged results --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["forges", "forges_operators"])
def test_a_library_that_forges_a_result(twinkle, small, attack, name):
    kernel(twinkle, attack, name)
    done = twinkle("kernelize", small[0], "--inputs", small[1], "--verify", "-o", "fast.pt", "--json")
    error = refused(done, 6)
    assert "\x1b" not in json.loads(done.err)["error"]["what"] and error["where"]
    assert not (twinkle.folder / "fast.pt").exists()
    for text in (twinkle("kernelize", small[0], "-o", "fast.pt").err, done.err):
        assert "\x1b" not in text


def test_an_operator_that_forges_an_end(twinkle, small, attack):
    """It ends the child as if all of its work were done: nobody waits for a verdict that does not come."""
    kernel(twinkle, attack, "quiet", "forge")
    done = twinkle("kernelize", small[0], "--inputs", small[1], "--verify", "-o", "fast.pt", "--json")
    assert done.code != 0 and not (twinkle.folder / "fast.pt").exists(), done.out


def test_an_operator_that_colours_the_report(twinkle, small, attack):
    kernel(twinkle, attack, "quiet", "colour")
    command = ["kernelize", small[0], "--inputs", small[1], "--verify", "-o", "fast.pt"]
    done = twinkle(*command, "--json")
    assert done.code == 0 and done.json["reverted"] == 2, done.err
    for site in done.json["sites"]:
        assert "segmentation fault" in site["because"] and "\x1b" not in site["because"]
    done = twinkle(*command)
    assert "\x1b" not in done.out + done.err


def test_a_library_that_forges_a_run(twinkle, small, attack):
    kernel(twinkle, attack, "forges_a_run")
    assert twinkle("kernelize", small[0], "-o", "fast.pt").code == 0
    done = twinkle("run", "fast.pt", "--inputs", small[1], "--kernels", ".", "-o", "out.pt", "--json",
                   env={"MISBEHAVE": "1"})
    # Its outputs are its own business; what it says of them is no more than text.
    assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize("change", ["nothing", "other"])
def test_a_worker_that_wrote_something_else(fake_worker, change):
    write = "open(request['output'], 'wb').write(b'another file')\n" if change == "other" else ""
    report = {"schema": "twinkle.kernelize/1", "sites": [], "replaced": 1, "kept": 0, "reverted": 0, "warnings": [],
              "verified": True, "written": "1:2:12:3.4:5.6"}
    twinkle = fake_worker(write + f"raw(json.dumps({{'result': json.loads({json.dumps(json.dumps(report))})}}).encode() + b'\\n')\n")
    error = refused(twinkle("kernelize", "model.pt", "--map", "empty.map.json", "-o", "fast.pt", "--json"), 1, "fast.pt")
    assert ("no such file" if change == "nothing" else "another file") in error["why"]


# Time and amount -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, words", [("sleeps", "hung"), ("babbles", "hung"), ("drips", "hung"), ("talks", ""),
                                         ("floods", "")])
def test_a_library_that_does_not_end(twinkle, small, attack, name, words):
    build = kernel(twinkle, attack, name)
    start = time.monotonic()
    error = refused(twinkle("kernelize", small[0], "-o", "fast.pt", "--json", env=FEW_SECONDS), 6, words)
    assert time.monotonic() - start < 20
    assert "the kernel kernel" in error["what"] and error["where"].endswith(build.name)
    assert not (twinkle.folder / "fast.pt").exists()


def test_a_library_that_sleeps_in_a_run(twinkle, small, attack):
    kernel(twinkle, attack, "sleeps_on_demand")
    assert twinkle("kernelize", small[0], "-o", "fast.pt").code == 0
    start = time.monotonic()
    done = twinkle("run", "fast.pt", "--inputs", small[1], "--kernels", ".", "--json",
                   env={**FEW_SECONDS, "MISBEHAVE": "1"})
    assert "the kernel " in refused(done, 6, "hung")["what"] and time.monotonic() - start < 20


# What stays behind -----------------------------------------------------------------------------------------------


def test_the_mode_of_what_is_written_is_not_the_kernels_choice(twinkle, small, attack):
    kernel(twinkle, attack, "opens_the_door")
    mask = {"preexec_fn": lambda: os.umask(0o027)}
    assert twinkle("kernelize", small[0], "--inputs", small[1], "--verify", "-o", "fast.pt", "--report", "report.json",
                   **mask).code == 0
    for more in ([], ["--allow-io"]):
        done = twinkle("run", "fast.pt", "--inputs", small[1], "--kernels", ".", "-o", "out.pt", *more, **mask)
        assert done.code == 0, done.err
        assert stat.S_IMODE((twinkle.folder / "out.pt").stat().st_mode) == 0o640
        (twinkle.folder / "out.pt").unlink()
    for name in ("fast.pt", "report.json"):
        assert stat.S_IMODE((twinkle.folder / name).stat().st_mode) == 0o640


def test_a_daemon_keeps_nobody_waiting(twinkle, small, attack):
    kernel(twinkle, attack, "daemon")
    start = time.monotonic()
    done = twinkle("kernelize", small[0], "--inputs", small[1], "--verify", "-o", "fast.pt")
    assert done.code == 0 and "2 replaced" in done.out, done.err
    for more in ([], ["--allow-io"]):  # with it, there is a daemon
        done = twinkle("run", "fast.pt", "--inputs", small[1], "--kernels", ".", *more)
        assert done.code == 0, done.err
    assert time.monotonic() - start < 30


# Systems that offer less -----------------------------------------------------------------------------------------

ANSWER_ENOSYS = 0x00050000 | 38
ALLOW = 0x7FFF0000


def without_calls(*numbers):
    """For a child of this process: these system calls are not there."""
    instructions = [(0x20, 0, 0, 0)]  # load the number of the call
    for number in numbers:
        instructions += [(0x15, 0, 1, number), (0x06, 0, 0, ANSWER_ENOSYS)]
    instructions.append((0x06, 0, 0, ALLOW))
    code = b"".join(opcode.to_bytes(2, sys.byteorder) + bytes([yes, no]) + value.to_bytes(4, sys.byteorder)
                    for opcode, yes, no, value in instructions)

    def restrict():
        libc = ctypes.CDLL(None, use_errno=True)
        buffer = ctypes.create_string_buffer(code, len(code))

        class Program(ctypes.Structure):
            _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

        program = Program(len(instructions), ctypes.addressof(buffer))
        assert libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
        assert libc.prctl(22, 2, ctypes.byref(program)) == 0  # seccomp

    return restrict


LANDLOCK = (444, 445, 446)
SECCOMP = {"x86_64": 317, "aarch64": 277}[os.uname().machine]


@pytest.mark.parametrize("calls, words", [(LANDLOCK, "Landlock"), ((SECCOMP,), "seccomp")])
def test_what_is_not_confined_is_said(twinkle, small, attack, calls, words):
    kernel(twinkle, attack, "quiet")
    command = ["kernelize", small[0], "--inputs", small[1], "--verify", "-o", "fast.pt", "--report", "report.json"]
    done = twinkle(*command, "--json", preexec_fn=without_calls(*calls))
    assert done.code == 0, done.err
    assert sum(words in text for text in done.json["warnings"]) == 1
    assert words in (twinkle.folder / "report.json").read_text()
    assert words in twinkle(*command, preexec_fn=without_calls(*calls)).err
    done = twinkle("run", "fast.pt", "--inputs", small[1], "--kernels", ".", preexec_fn=without_calls(*calls))
    assert done.code == 0 and words in done.err


def test_an_operator_without_landlock_still_has_no_network(twinkle, small, attack):
    kernel(twinkle, attack, "quiet", "escape")
    done = twinkle("kernelize", small[0], "--inputs", small[1], "--verify", "-o", "fast.pt", "--json", env=attack.env,
                   preexec_fn=without_calls(*LANDLOCK))
    because = done.json["sites"][0]["because"]
    for what in ("network", "process", "program", "peek", "trace", "signal", "mode"):
        assert f" {what}" not in because
    (attack.folder / "home/planted").unlink(missing_ok=True)
    pathlib.Path("/tmp/twinkle-planted").unlink(missing_ok=True)
    (attack.folder / "home/victim").write_text("of no use")


# The command that holds the token --------------------------------------------------------------------------------


def test_the_command_cannot_be_read_by_other_processes():
    """Its entry in /proc belongs to root, whoever has started it: so it is with processes that leave no core."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        os.chmod(name, 0o755)
        program = shutil.copy(PROGRAM, name)
        reading, writing = os.pipe()
        for end in (reading, writing):
            stack.callback(os.close, end)
        os.set_blocking(writing, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writing, b"-" * 4096)
        os.set_blocking(writing, True)  # what is written next waits, until somebody reads
        user = {"user": 65534} if os.geteuid() == 0 else {}
        process = subprocess.Popen([program, "--help"], stdout=writing, stderr=subprocess.DEVNULL, cwd="/",
                                   env=environment(HF_TOKEN=TOKEN), **user)
        stack.callback(process.wait)
        stack.callback(process.kill)
        entry = pathlib.Path(f"/proc/{process.pid}")
        deadline = time.monotonic() + 20
        while (entry / "environ").stat().st_uid != 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert process.poll() is None and (entry / "environ").stat().st_uid == 0
