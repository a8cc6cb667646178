#include "base/process.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include "catch.h"
#include "throws.h"

using namespace twinkle;
using namespace twinkle::base;
using namespace std::chrono_literals;

namespace {

struct ProcessResult {
    ExitStatus status;
    bool timed_out = false;
    std::string out;
    std::string err;
};

// Runs to the end and collects at most `output_limit` bytes of each output; the rest is dropped.
ProcessResult run_process(const ProcessSpec& spec, std::string_view input = {},
                          std::optional<std::chrono::milliseconds> time_limit = {},
                          std::size_t output_limit = 16u << 20) {
    Process process(spec);
    if (time_limit) {
        process.set_time_limit(*time_limit);
    }
    ProcessResult result;
    result.status = process.communicate(input, [&](Channel channel, std::string_view text) {
        auto& output = channel == Channel::out ? result.out : result.err;
        output.append(text.substr(0, output_limit - std::min(output_limit, output.size())));
    });
    result.timed_out = process.timed_out();
    return result;
}

ProcessSpec shell(const std::string& script) {
    ProcessSpec spec;
    spec.arguments = {"/bin/sh", "-c", script};
    return spec;
}

}  // namespace

TEST_CASE("a program's outputs and exit status are collected") {
    const auto result = run_process(shell("cat; echo to-err >&2; exit 3"), "hello");
    CHECK(result.out == "hello");
    CHECK(result.err == "to-err\n");
    CHECK(result.status.code == 3);
    CHECK(result.status.describe() == "exit status 3");
    CHECK_FALSE(result.status.ok());
}

TEST_CASE("more input and output than pipes hold do not block each other") {
    const std::string much(5u << 20, 'x');
    const auto result = run_process(shell("cat"), much);
    CHECK(result.status.ok());
    CHECK(result.out == much);
}

TEST_CASE("a program that does not read its input is no reason to die of SIGPIPE") {
    const auto result = run_process(shell("exit 0"), std::string(5u << 20, 'x'));
    CHECK(result.status.ok());
}

TEST_CASE("what is over the limit of output is dropped") {
    const auto result = run_process(shell("head -c 100000 /dev/zero"), {}, {}, 1000);
    CHECK(result.out.size() == 1000);
    CHECK(result.status.ok());
}

TEST_CASE("an end by a signal is told from an exit status") {
    const auto result = run_process(shell("kill -SEGV $$"));
    CHECK(result.status.signal == SIGSEGV);
    CHECK(result.status.describe() == "signal 11 (Segmentation fault)");
}

TEST_CASE("a program that runs too long is killed") {
    const auto start = std::chrono::steady_clock::now();
    const auto result = run_process(shell("sleep 20"), {}, 200ms);
    CHECK(result.timed_out);
    CHECK(result.status.signal == SIGKILL);
    CHECK(std::chrono::steady_clock::now() - start < 10s);
}

TEST_CASE("a grandchild that keeps the pipes open does not keep us") {
    const auto start = std::chrono::steady_clock::now();
    const auto result = run_process(shell("sleep 20 & echo done"));
    CHECK(result.out == "done\n");
    CHECK(std::chrono::steady_clock::now() - start < 10s);
}

TEST_CASE("a program that is not there is an error") {
    ProcessSpec spec;
    spec.arguments = {"/no/such/program"};
    const auto error = test::error_of([&] { run_process(spec); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::not_found);
    CHECK(error->details().where == "/no/such/program");
}

TEST_CASE("file descriptor 3 is the side channel, and no other is inherited") {
    auto spec = shell("echo words; echo event >&3; ls /proc/self/fd | wc -l");
    spec.side_channel = true;
    std::string out, side;
    Process process(spec);
    const auto status = process.communicate({}, [&](Channel channel, std::string_view text) {
        (channel == Channel::side ? side : out).append(text);
    });
    CHECK(status.ok());
    CHECK(side == "event\n");
    CHECK(out == "words\n5\n");  // 0 to 3, and the folder that ls reads
}

TEST_CASE("the environment is added to") {
    auto spec = shell("echo $TWINKLE_TEST_VALUE; test -n \"$PATH\"");
    spec.environment["TWINKLE_TEST_VALUE"] = "one two";
    const auto result = run_process(spec);
    CHECK(result.out == "one two\n");
    CHECK(result.status.ok());
}

TEST_CASE("what a sink throws ends the program") {
    Process process(shell("echo first; sleep 20"));
    CHECK_THROWS_AS(process.communicate({}, [](Channel, std::string_view) { throw 1; }), int);
    CHECK(kill(process.pid(), 0) != 0);
}
