#include "cli/worker_conversation.h"

#include <csignal>
#include <map>

#include "base/terminal.h"
#include "base/text.h"

namespace twinkle::cli {
namespace {

constexpr std::size_t longest_speech = 4096;

std::string stage_words(const std::string& stage) {
    static const std::map<std::string, std::string> words = {
        {"start", "starting"},
        {"load-model", "loading the model"},
        {"load-kernel", "loading the kernel"},
        {"inspect", "inspecting"},
        {"compile", "compiling"},
        {"prepare", "preparing weights"},
        {"prove", "proving"},
        {"verify", "verifying"},
        {"survey", "looking up"},
        {"tune", "tuning"},
        {"wait", "waiting"},
        {"precision", "trying fewer bits"},
        {"freeze", "freezing"},
        {"measure", "measuring"},
        {"save", "saving"},
        {"run", "running"},
    };
    const auto found = words.find(stage);
    return found != words.end() ? found->second : base::printable(stage);
}

// Passes every complete line in `buffer` + `bytes` to `take`; the rest stays in `buffer`.
template <typename Take>
void lines(std::string& buffer, std::string_view bytes, Take&& take) {
    for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
        buffer.append(bytes.substr(0, end));
        bytes.remove_prefix(end + 1);
        const std::string line = std::exchange(buffer, {});
        take(line);
    }
    buffer.append(bytes);
}

}  // namespace

void WorkerConversation::receive(base::Channel channel, std::string_view bytes) {
    if (channel == base::Channel::side) {
        lines(events_, bytes, [&](std::string_view line) { event_line(line); });
        if (events_.size() > protocol::longest_event) {
            not_the_protocol("a line of more than 64 MiB");
        }
        return;
    }
    lines(speech_, bytes, [&](std::string_view line) { speech_line(line); });
    if (speech_.size() > longest_speech) {
        speech_line(std::exchange(speech_, {}));
    }
}

void WorkerConversation::event_line(std::string_view line) {
    if (line.empty()) {
        return;
    }
    if (finished()) {
        not_the_protocol("more after its result");
    }
    std::visit([&](const auto& one) { take(one); }, event_of(line));
}

protocol::Event WorkerConversation::event_of(std::string_view line) const {
    try {
        return protocol::parse_event(line);
    } catch (const Error& error) {
        not_the_protocol(error.details().why);
    }
}

void WorkerConversation::take(const protocol::StageEvent& event) {
    stage_ = event.stage;
    what_ = base::printable(event.what);
    const auto line = stage_words(stage_) + (what_.empty() ? "" : " " + what_);
    console_.detail(line);
    console_.progress().show(line);
}

void WorkerConversation::take(const protocol::ProgressEvent& event) {
    console_.progress().show(event.what, event.done, event.total);
}

void WorkerConversation::take(const protocol::LogEvent& event) {
    event.warning ? console_.warn(event.text) : console_.trace(event.text);
}

void WorkerConversation::take(const protocol::ResultEvent& event) {
    result_ = event.result;
}

void WorkerConversation::take(const protocol::ErrorEvent& event) {
    error_ = event.error;
}

void WorkerConversation::speech_line(std::string_view line) {
    const auto text = base::printable(line.substr(0, longest_speech));
    if (!text.empty()) {
        last_words_ = base::keep_head(text, 300);
        console_.note(text);
    }
}

void WorkerConversation::not_the_protocol(const std::string& why) const {
    blame("wrote what is not its protocol", why);
}

// A failure while a kernel is read and tried is put down to it: what is foreign then are its files.
void WorkerConversation::blame(const std::string& happened, const std::string& why) const {
    const auto reason = last_words_.empty() ? why : why + "; its last words: " + last_words_;
    if (stage_ == "load-kernel") {
        throw Error(
            ErrorCode::refused,
            {.what = "the kernel " + what_ + " cannot be loaded: twinkle's worker " + happened,
             .where = what_,
             .why = reason,
             .hint = "leave it out of the manifest, or use another version of it"});
    }
    throw Error(ErrorCode::failed,
                {.what = "twinkle's worker " + happened + " while " + stage_words(stage_),
                 .where = what_,
                 .why = reason,
                 .hint = "-vv shows what it was doing"});
}

base::Json WorkerConversation::conclude(const base::ExitStatus& status) {
    if (!speech_.empty()) {
        speech_line(std::exchange(speech_, {}));
    }
    if (error_) {
        throw *error_;
    }
    if (result_) {
        if (!status.ok()) {
            console_.warn("the worker had finished, but then ended with " + status.describe());
        }
        return std::move(*result_);
    }
    if (!events_.empty() && status.ok()) {
        not_the_protocol("an unfinished line");
    }
    if (status.signal == SIGKILL) {
        blame("was killed by the system", "most likely there was not enough memory");
    }
    if (status.signal != 0) {
        blame("crashed", status.describe());
    }
    blame("ended without a result", status.describe());
}

}  // namespace twinkle::cli
