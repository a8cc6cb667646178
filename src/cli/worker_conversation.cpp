#include "cli/worker_conversation.h"

#include <csignal>
#include <map>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/json_fields.h"
#include "protocol/error_json.h"

namespace twinkle::cli {
namespace {

constexpr std::size_t longest_event = 64u << 20;  // the report of a model with 100 000 sites
constexpr std::size_t longest_speech = 4096;
constexpr std::size_t longest_text = 4096;  // for a name or a sentence that is shown

std::string short_text(const base::Json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) {
        return {};
    }
    return found->get_ref<const std::string&>().substr(0, longest_text);
}

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

Error error_of_worker(const base::Json& error) {
    constexpr ErrorCode believed[] = {ErrorCode::failed,      ErrorCode::malformed,
                                      ErrorCode::not_found,   ErrorCode::verification,
                                      ErrorCode::unreachable, ErrorCode::refused,
                                      ErrorCode::out_of_date, ErrorCode::interrupted};
    return protocol::error_of(error, believed, ErrorCode::failed);
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
        if (events_.size() > longest_event) {
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
    base::Json message;
    try {
        message = base::parse_json(line, "worker", {.bytes = longest_event, .depth = 32});
    } catch (const Error& error) {
        not_the_protocol(error.details().why.empty() ? error.details().what : error.details().why);
    }
    if (!message.is_object()) {
        not_the_protocol("a value that is not an object");
    }
    event(message);
}

void WorkerConversation::event(const base::Json& message) {
    const auto kind = short_text(message, "event");
    if (kind == "stage") {
        stage_ = short_text(message, "stage");
        what_ = base::printable(short_text(message, "what"));
        const auto line = stage_words(stage_) + (what_.empty() ? "" : " " + what_);
        console_.detail(line);
        console_.progress().show(line);
    } else if (kind == "progress") {
        console_.progress().show(short_text(message, "what"), count_in(message, "done"),
                                 count_in(message, "total"));
    } else if (kind == "log") {
        const auto level = short_text(message, "level");
        const auto text = short_text(message, "text");
        level == "warning" ? console_.warn(text)
        : level == "info"  ? console_.note(text)
        : level == "trace" ? console_.trace(text)
                           : console_.detail(text);
    } else if (const auto result = message.find("result");
               result != message.end() && result->is_object()) {
        result_ = *result;
    } else if (const auto error = message.find("error");
               error != message.end() && error->is_object()) {
        error_ = error_of_worker(*error);
    } else {
        not_the_protocol("a message that is no event, result or error");
    }
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
