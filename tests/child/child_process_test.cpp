#include "child/child_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "catch.h"

using namespace twinkle::child;
using std::chrono::milliseconds;

namespace {

struct Heard {
    Outcome outcome;
    std::vector<std::string> lines;
    milliseconds spent{};
};

Heard hear(const Limits& limits, const std::function<void(const Send&)>& work) {
    Heard heard;
    const auto start = std::chrono::steady_clock::now();
    heard.outcome =
        run(limits, work, [&](std::string_view line) { heard.lines.emplace_back(line); });
    heard.spent =
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
    return heard;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// Finds the pipe to the parent, as foreign code could.
int result_pipe() {
    for (int number = 3; number < 256; ++number) {
        char target[64] = "";
        const auto size =
            ::readlink(("/proc/self/fd/" + std::to_string(number)).c_str(), target, 63);
        if (size > 0 && std::string(target, static_cast<std::size_t>(size)).starts_with("pipe:")) {
            return number;
        }
    }
    return -1;
}

}  // namespace

TEST_CASE("lines of a child arrive in order, and its end is told from a crash") {
    const auto said = hear({}, [](const Send& send) {
        send("one");
        send(std::string(300000, 'x'));
    });
    CHECK(said.outcome.finished);
    REQUIRE(said.lines.size() == 2);
    CHECK(said.lines[1].size() == 300000);
    const auto why = [](const std::function<void()>& work) {
        const auto heard = hear({}, [&](const Send& send) {
            send("before");
            work();
        });
        CHECK(heard.lines.size() == 1);
        return heard.outcome.finished ? "finished" : heard.outcome.why;
    };
    CHECK(why([] {}) == "finished");
    CHECK(contains(why([] { ::raise(SIGSEGV); }), "segmentation fault"));
    CHECK(contains(why([] { std::abort(); }), "aborted"));
    CHECK(contains(why([] { ::_exit(0); }), "exit code 0"));
    const auto threw = why([] { throw std::runtime_error("no\x1b[31m way"); });
    CHECK(contains(threw, "exception: no"));
    CHECK_FALSE(contains(threw, "\x1b"));
    CHECK(contains(why([] { throw std::runtime_error("\nThe call failed.\nframe 0"); }),
                   "exception: The call failed."));
}

TEST_CASE("a child that says nothing, and one that goes on for ever, are stopped") {
    Limits limits;
    limits.silence = milliseconds(300);
    limits.total = milliseconds(1500);
    const auto silent = hear(limits, [](const Send&) { ::sleep(30); });
    CHECK(contains(silent.outcome.why, "nothing came"));
    CHECK(silent.spent < milliseconds(1400));
    const auto talking = hear(limits, [](const Send& send) {
        while (true) {
            ::usleep(50000);
            send("still here");
        }
    });
    CHECK(contains(talking.outcome.why, "had not ended"));
    CHECK(talking.spent < milliseconds(5000));
    // Single bytes are no sign of life.
    const auto dripping = hear(limits, [](const Send&) {
        const int pipe = result_pipe();
        while (::write(pipe, "x", 1) == 1) {
            ::usleep(50000);
        }
    });
    CHECK(contains(dripping.outcome.why, "nothing came"));
    // A limit may be lifted while it runs.
    Limits lifted = limits;
    const auto outcome = run(
        lifted,
        [](const Send& send) {
            send("loaded");
            ::usleep(2000000);
        },
        [&](std::string_view) { lifted.silence = lifted.total = std::chrono::hours(1); });
    CHECK(outcome.finished);
}

TEST_CASE("a child that closes its pipe and goes on is stopped") {
    Limits limits;
    limits.silence = milliseconds(300);
    const auto heard = hear(limits, [](const Send&) {
        ::close(result_pipe());
        ::sleep(30);
    });
    CHECK(contains(heard.outcome.why, "nothing came"));
    CHECK(heard.spent < milliseconds(5000));
}

TEST_CASE("what a child may write is bounded") {
    Limits limits;
    limits.output = 4 << 20;
    CHECK(contains(hear(limits,
                        [](const Send&) {
                            const std::string line(1000, 'x');
                            for (const int pipe = result_pipe();;) {
                                if (::write(pipe, (line + "\n").c_str(), 1001) < 0) {
                                    break;
                                }
                            }
                        })
                       .outcome.why,
                   "more than 4 MiB"));
    CHECK(contains(hear(limits,
                        [](const Send&) {
                            const std::string block(65536, 'x');
                            for (const int pipe = result_pipe();
                                 ::write(pipe, block.data(), block.size()) > 0;) {
                            }
                        })
                       .outcome.why,
                   "without an end"));
}

TEST_CASE("a line that its reader refuses ends the child") {
    const auto outcome = run(
        {}, [](const Send& send) { send("{"); },
        [](std::string_view) { throw std::runtime_error("no JSON"); });
    CHECK_FALSE(outcome.finished);
    CHECK(contains(outcome.why, "does not understand"));
}

TEST_CASE("a grandchild that holds the pipe does not delay the end, and ends with it") {
    Limits limits;
    limits.confinement.none = true;  // else there could be none
    int note[2];
    REQUIRE(::pipe(note) == 0);
    limits.descriptors = {note[1]};
    const auto heard = hear(limits, [&](const Send& send) {
        if (::fork() == 0) {
            ::sleep(60);
            ::_exit(0);
        }
        send("started");
    });
    ::close(note[1]);
    CHECK(heard.outcome.finished);
    CHECK(heard.spent < milliseconds(2000));
    char byte = 0;
    CHECK(::read(note[0], &byte, 1) == 0);  // the other end is closed everywhere
    ::close(note[0]);
}

TEST_CASE("a child has no descriptor of its parent but those that it is given") {
    const int file = ::open("/proc/self/exe", O_RDONLY);
    const int given = ::open("/proc/self/exe", O_RDONLY);
    const int library = ::memfd_create("library", MFD_ALLOW_SEALING);
    REQUIRE(::write(library, "text", 4) == 4);
    REQUIRE(::fcntl(library, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) == 0);
    Limits limits;
    limits.descriptors = {given};
    const auto heard = hear(limits, [&](const Send& send) {
        char byte = 0;
        send(std::to_string(::pread(file, &byte, 1, 0)));
        send(std::to_string(::pread(given, &byte, 1, 0)));
        send(std::to_string(::pread(library, &byte, 1, 0)));
        send(::fcntl(file, F_GETFD) >= 0 ? "taken" : "free");
    });
    for (const int one : {file, given, library}) {
        ::close(one);
    }
    REQUIRE(heard.lines.size() == 4);
    CHECK(heard.lines[0] != "1");
    CHECK(heard.lines[1] == "1");
    CHECK(heard.lines[2] == "1");
    CHECK(heard.lines[3] == "taken");
}

TEST_CASE("a child has memory within its limit") {
    Limits limits;
    limits.memory = 256u << 20;
    const auto heard = hear(limits, [](const Send& send) {
        void* much = ::mmap(nullptr, 512u << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        send(much == MAP_FAILED ? "none" : "much");
    });
    CHECK(heard.lines == std::vector<std::string>{"none"});
}
