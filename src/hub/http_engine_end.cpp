// How transfers end (done, refused, failed) or continue (redirected, retried).
#include <fmt/format.h>

#include <algorithm>

#include "hub/http_engine.h"
#include "hub/http_failure.h"
#include "hub/url.h"

namespace twinkle::hub {
namespace {

constexpr int most_hops = 10;
constexpr std::uint64_t progress = 1u << 20;  // bytes, after which failures count anew

bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

void Http::Engine::ended(Job& job, CURLcode code) {
    Exchange& exchange = *job.exchange;
    exchange.finish(code);
    log(job, exchange);
    if (exchange.thrown()) {
        std::rethrow_exception(exchange.thrown());
    }
    Host& host = hosts_[job.origin];
    host.answered = host.answered || exchange.head().status != 0;
    host.multiplexes = host.multiplexes || exchange.head().http_version == 20;
    job.received += exchange.received();
    if (exchange.received() >= progress) {
        job.failures = 0;
    }

    Outcome outcome;
    outcome.kind = exchange.stopped() ? Outcome::Kind::stopped : Outcome::Kind::failed;
    outcome.head = exchange.head();
    outcome.body = exchange.body();
    outcome.failure = exchange.failure();
    outcome.reason = exchange.reason();
    job.hub_headers = exchange.head().hub_headers;
    detach(job);
    if (judge(job, outcome)) {
        complete(job.id, std::move(outcome));
    }
}

bool Http::Engine::judge(Job& job, Outcome& outcome) {
    const int status = outcome.head.status;
    if (outcome.kind == Outcome::Kind::stopped) {
        return true;
    }
    if (is_redirect(status)) {
        return redirect(job, outcome);
    }
    if (status < 300 && outcome.failure == Failure::none) {
        outcome.kind = Outcome::Kind::done;
        return true;
    }
    bool transient = is_transient(outcome.failure);
    if (status >= 300) {
        // A refusal counts even if its text is truncated.
        outcome.kind = Outcome::Kind::refused;
        outcome.failure = Failure::none;
        outcome.reason.clear();
        // At another host, the signed URL may have expired while the transfer waited: the Hub gives
        // a new one.
        transient = is_transient(status) || (status == 403 && job.left_hub && job.failures < 2);
    }
    return !transient || !again(job, outcome);
}

bool Http::Engine::redirect(Job& job, Outcome& outcome) {
    const auto fail = [&](std::string reason) {
        outcome.kind = Outcome::Kind::failed;
        outcome.failure = Failure::redirect;
        outcome.reason = std::move(reason);
        return true;
    };
    outcome.kind = Outcome::Kind::refused;
    outcome.failure = Failure::none;
    const auto location = outcome.head.headers.get("location");
    const auto target = location ? resolve_url(job.url, std::string(*location)) : std::nullopt;
    if (!target) {
        return fail(location ? "it redirects to what is not an http or https URL"
                             : "it redirects to nowhere");
    }
    const std::string origin = origin_of(*target).value_or("");
    if (origin != job.origin && job.transfer.request.redirects == Redirects::same_origin) {
        return true;
    }
    if (job.origin.starts_with("https:") && origin.starts_with("http:") &&
        !endpoint_origin_.starts_with("http:")) {
        return fail("it redirects from https to http");
    }
    if (++job.hops > most_hops) {
        return fail("it redirects without end");
    }
    job.left_hub = job.left_hub || origin != endpoint_origin_;
    job.url = *target;
    job.origin = origin;
    enqueue(job, true);
    return false;
}

bool Http::Engine::again(Job& job, const Outcome& outcome) {
    Host& host = hosts_[job.origin];
    const RetryPolicy& policy = options_.retry;
    const Time now = clock_.now();
    if (++job.failures == 1) {
        job.first_failure = now;
    }
    // A host that has never answered will not answer in two seconds.
    const bool unknown =
        !host.answered && outcome.failure != Failure::none && outcome.failure != Failure::broken;
    if (job.failures >= (unknown ? std::min(2, policy.attempts) : policy.attempts)) {
        return false;
    }
    const auto delay =
        retry_delay(policy, job.failures, outcome.head.status, outcome.head.headers, clock_);
    if (!delay || now + *delay - job.first_failure > policy.total) {
        return false;
    }
    if (job.transfer.on_retry ? !job.transfer.on_retry(job.transfer.request) : job.received > 0) {
        return false;
    }
    if (outcome.head.status == 429) {
        host.closed_until = std::max(host.closed_until, now + *delay);
    }
    // Restarts at the original URL: the redirect's target may be valid only briefly.
    due_.emplace(now + *delay, job.id);
    job.url = job.transfer.request.url;
    job.origin = origin_of(job.url).value_or(job.origin);
    job.left_hub = job.origin != endpoint_origin_;
    job.hops = 0;
    return true;
}

void Http::Engine::complete(TransferId id, Outcome outcome) {
    const auto found = jobs_.find(id);
    const std::unique_ptr<Job> job = std::move(found->second);
    jobs_.erase(found);
    detach(*job);
    outcome.head.hub_headers = std::move(job->hub_headers);
    outcome.attempts = job->attempts;
    outcome.received = job->received;
    if (job->transfer.on_done) {
        job->transfer.on_done(outcome);
    }
}

void Http::Engine::log(const Job& job, const Exchange& exchange) const {
    if (!options_.log) {
        return;
    }
    const int status = exchange.head().status;
    options_.log(fmt::format("{} {} {}{} {} ms{}{}", job.transfer.request.method,
                             redacted_url(job.url), status == 0 ? "" : std::to_string(status),
                             exchange.failure() == Failure::none
                                 ? ""
                                 : (status == 0 ? "(" : " (") + exchange.reason() + ")",
                             exchange.duration().count(),
                             job.attempts > 1 ? fmt::format(", attempt {}", job.attempts) : "",
                             exchange.head().http_version == 20 ? ", HTTP/2" : ""));
}

}  // namespace twinkle::hub
