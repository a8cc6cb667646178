#include "hub/http.h"

#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "hub/http_engine.h"
#include "hub/http_failure.h"
#include "hub/token_in_the_clear.h"
#include "hub/url.h"

namespace twinkle::hub {

std::optional<std::uint64_t> Head::total_size() const {
    if (status == 206) {
        const auto value = headers.get("content-range");
        const auto range = value ? content_range(*value) : std::nullopt;
        return range ? range->total : std::nullopt;
    }
    const auto length = headers.get("content-length");
    return length ? base::parse_number<std::uint64_t>(*length) : std::nullopt;
}

Http::Http(const Settings& settings, HttpOptions options)
    : settings_(settings), options_(std::move(options)) {}
Http::~Http() = default;

Http::Engine& Http::engine() {
    if (!engine_) {
        refuse_token_in_the_clear(settings_);
        engine_ = std::make_unique<Engine>(settings_, options_);
    }
    return *engine_;
}

TransferId Http::start(Transfer transfer) {
    return engine().start(std::move(transfer));
}
void Http::run() {
    engine().run();
}
void Http::resume(TransferId id) {
    engine().resume(id);
}
void Http::cancel(TransferId id) {
    engine().cancel(id);
}
void Http::post(std::function<void()> function) {
    engine().post(std::move(function));
}
std::uint64_t Http::requests() const {
    return engine_ ? engine_->requests() : 0;
}

Response Http::send(Request request, std::size_t limit) {
    const std::string url = request.url;
    Response response;
    Outcome outcome;
    start(small_transfer(std::move(request), limit, [&](const Outcome& ended, std::string& body) {
        outcome = ended;
        response.body = std::move(body);
    }));
    run();
    if (outcome.kind != Outcome::Kind::done && outcome.kind != Outcome::Kind::refused) {
        throw error_of(outcome, "the Hub cannot be reached", url);
    }
    response.head = std::move(outcome.head);
    response.attempts = outcome.attempts;
    return response;
}

Transfer small_transfer(Request request, std::size_t limit,
                        std::function<void(const Outcome&, std::string&)> on_done) {
    struct State {
        std::string body;
        bool too_large = false;
    };
    auto state = std::make_shared<State>();
    Transfer transfer;
    transfer.request = std::move(request);
    transfer.on_head = [state, limit, body = transfer.request.method != "HEAD"](const Head& head) {
        state->body.clear();
        const auto length = head.headers.get("content-length");
        const auto announced = length ? base::parse_number<std::uint64_t>(*length) : std::nullopt;
        state->too_large = body && announced && *announced > limit;
        return state->too_large ? Flow::stop : Flow::more;
    };
    transfer.on_data = [state, limit](std::string_view bytes) {
        state->too_large = bytes.size() > limit - state->body.size();
        if (!state->too_large) {
            state->body += bytes;
        }
        return state->too_large ? Flow::stop : Flow::more;
    };
    transfer.on_retry = [](Request&) { return true; };
    transfer.on_done = [state, done = std::move(on_done)](const Outcome& ended) {
        Outcome outcome = ended;
        if (state->too_large) {
            outcome.kind = Outcome::Kind::failed;
            outcome.failure = Failure::too_large;
            outcome.reason = "the answer is larger than anything that is expected there";
        }
        std::string body =
            outcome.kind == Outcome::Kind::done ? std::move(state->body) : outcome.body;
        done(outcome, body);
    };
    return transfer;
}

Error Http::error_of(const Outcome& outcome, std::string what, const std::string& url) const {
    const std::string where = redacted_url(outcome.head.url.empty() ? url : outcome.head.url);
    switch (outcome.kind) {
        case Outcome::Kind::interrupted:
            return Error(
                ErrorCode::interrupted,
                {.what = std::move(what), .where = where, .why = "interrupted", .hint = ""});
        case Outcome::Kind::refused: {
            const auto said = outcome.head.headers.get("x-error-message");
            return Error(ErrorCode::unreachable,
                         {.what = std::move(what),
                          .where = where,
                          .why = "it answers with status " + std::to_string(outcome.head.status) +
                                 (said ? ": " + base::printable(said->substr(0, 500)) : ""),
                          .hint = ""});
        }
        default: break;
    }
    std::string why = outcome.reason;
    if (outcome.attempts > 1) {
        why += " (tried " + std::to_string(outcome.attempts) + " times)";
    }
    return Error(ErrorCode::unreachable, {.what = std::move(what),
                                          .where = where,
                                          .why = std::move(why),
                                          .hint = hint_for(outcome.failure, settings_)});
}

}  // namespace twinkle::hub
