#include "cli/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>

namespace twinkle::cli {
namespace {

// A signal handler can access only globals; they stay in this file.
std::atomic<int> target{0};
std::atomic<int> interrupts_seen{0};
std::atomic<bool> say_json{false};
std::atomic<bool> raises_flag{false};
std::atomic<bool> stop_flag{false};

constexpr std::string_view plain_words = "\nerror: interrupted\n";
constexpr std::string_view json_words =
    "{\"error\": {\"code\": \"interrupted\", \"hint\": \"\", \"what\": \"interrupted\", "
    "\"where\": \"\", \"why\": \"\"}}\n";

void on_interrupt(int) {
    const int earlier = interrupts_seen.fetch_add(1);
    if (const int pid = target.load(); pid > 0) {
        kill(pid, earlier == 0 ? SIGINT : SIGKILL);
        return;
    }
    if (raises_flag && earlier == 0) {
        stop_flag = true;
        return;
    }
    const auto text = say_json ? json_words : plain_words;
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
    _exit(130);
}

sigset_t interrupts() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        sigaddset(&set, number);
    }
    return set;
}

}  // namespace

void install_interrupt_handler(bool json) {
    say_json = json;
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction before{};
        sigaction(number, nullptr, &before);
        if (before.sa_handler == SIG_IGN) {  // nohup, or a shell's background job
            continue;
        }
        struct sigaction action{};
        action.sa_handler = on_interrupt;
        action.sa_mask = interrupts();
        sigaction(number, &action, nullptr);
    }
}

bool interrupted() {
    return interrupts_seen.load() > 0;
}

InterruptTarget::InterruptTarget(int pid) {
    target = pid;
}
InterruptTarget::~InterruptTarget() {
    target = 0;
}

InterruptFlag::InterruptFlag() {
    raises_flag = true;
}
InterruptFlag::~InterruptFlag() {
    raises_flag = false;
}
const std::atomic<bool>& InterruptFlag::stop() const {
    return stop_flag;
}

InterruptDelay::InterruptDelay() {
    const auto set = interrupts();
    sigprocmask(SIG_BLOCK, &set, nullptr);
}
InterruptDelay::~InterruptDelay() {
    const auto set = interrupts();
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace twinkle::cli
