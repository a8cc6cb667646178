#include "hub/http_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <stdexcept>

#include "hub/http_failure.h"
#include "hub/url.h"

namespace twinkle::hub {
namespace {

using std::chrono::milliseconds;

constexpr int most_hops = 10;
constexpr milliseconds longest_sleep{100};  // an interrupt is seen this soon
constexpr std::uint64_t progress = 1u << 20;

void start_curl() {
    static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (code != CURLE_OK) {
        throw Error(ErrorCode::failed, {.what = "cannot start the HTTP library",
                                        .where = "",
                                        .why = curl_easy_strerror(code),
                                        .hint = ""});
    }
}

bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

Http::Engine::Engine(const Settings& settings, HttpOptions options)
    : settings_(settings),
      endpoint_origin_(origin_of(settings.endpoint).value_or("")),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock_) {
    start_curl();
    multi_ = curl_multi_init();
    if (multi_ == nullptr) {
        throw std::bad_alloc();
    }
    const long connections = options_.connections_per_host;
    curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, connections);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 4 * connections);
    curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
}

Http::Engine::~Engine() {
    abandon();
    spare_.clear();
    curl_multi_cleanup(multi_);
}

TransferId Http::Engine::start(Transfer transfer) {
    auto job = std::make_unique<Job>();
    const TransferId id = job->id = next_id_++;
    job->transfer = std::move(transfer);
    job->url = job->transfer.request.url;
    job->origin = origin_of(job->url).value_or("");
    if (job->origin.empty()) {
        throw Error(ErrorCode::malformed, {.what = "not an http or https URL",
                                           .where = redacted_url(job->url),
                                           .why = "",
                                           .hint = ""});
    }
    job->left_hub = job->origin != endpoint_origin_;
    enqueue(*job, job->transfer.urgent);
    jobs_.emplace(id, std::move(job));
    return id;
}

void Http::Engine::enqueue(Job& job, bool first) {
    auto& queue = hosts_[job.origin].waiting;
    if (first) {
        queue.push_front(job.id);
    } else {
        queue.push_back(job.id);
    }
}

void Http::Engine::post(std::function<void()> function) {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(function));
    curl_multi_wakeup(multi_);
}

// What happens while transfers run, in this order, until none is left.
void Http::Engine::run() {
    if (running_) {
        throw std::logic_error("Http::run() within a callback of itself");
    }
    running_ = true;
    silence_checked_ = std::chrono::steady_clock::now();
    try {
        do {
            while (!jobs_.empty()) {
                work();
            }
            take_posted();
        } while (!jobs_.empty());
    } catch (...) {
        running_ = false;
        abandon();
        throw;
    }
    running_ = false;
}

void Http::Engine::work() {
    take_posted();
    if (stopping()) {
        interrupt();
        return;
    }
    requeue_due();
    fill();
    int running = 0;
    apply_requests();
    curl_multi_perform(multi_, &running);
    const bool any_ended = handle_ended();
    if (!end_silent() && !any_ended && resumed_.empty() && cancelled_.empty()) {
        wait();
    }
}

void Http::Engine::take_posted() {
    std::vector<std::function<void()>> functions;
    {
        const std::lock_guard lock(posted_mutex_);
        functions.swap(posted_);
    }
    for (const auto& function : functions) {
        function();
    }
}

void Http::Engine::requeue_due() {
    const Time now = clock_.now();
    while (!due_.empty() && due_.begin()->first <= now) {
        if (const auto found = jobs_.find(due_.begin()->second); found != jobs_.end()) {
            enqueue(*found->second, true);
        }
        due_.erase(due_.begin());
    }
}

int Http::Engine::limit(const Host& host) const {
    return host.multiplexes ? options_.streams_per_host : options_.connections_per_host;
}

void Http::Engine::fill() {
    const Time now = clock_.now();
    for (auto& [origin, host] : hosts_) {
        while (!host.waiting.empty() && host.active < limit(host) && host.closed_until <= now) {
            const TransferId id = host.waiting.front();
            host.waiting.pop_front();
            if (const auto found = jobs_.find(id); found != jobs_.end()) {
                begin(*found->second, host);
            }
        }
    }
}

void Http::Engine::begin(Job& job, Host& host) {
    Easy easy;
    if (spare_.empty()) {
        easy.reset(curl_easy_init());
        if (!easy) {
            throw std::bad_alloc();
        }
    } else {
        easy = std::move(spare_.back());
        spare_.pop_back();
    }
    const bool authorized = job.origin == endpoint_origin_ && !job.left_hub;
    job.exchange = std::make_unique<Exchange>(std::move(easy), settings_, job.transfer, job.url,
                                              job.hub_headers, authorized);
    curl_easy_setopt(job.exchange->easy(), CURLOPT_PRIVATE, static_cast<void*>(&job));
    if (curl_multi_add_handle(multi_, job.exchange->easy()) != CURLM_OK) {
        throw std::bad_alloc();
    }
    ++host.active;
    ++on_wire_;
    ++requests_;
    job.attempts += job.hops == 0 ? 1 : 0;
}

// Cancelled and resumed ones: curl does not like either within its callbacks.
void Http::Engine::apply_requests() {
    std::vector<TransferId> resumed, cancelled;
    resumed.swap(resumed_);
    cancelled.swap(cancelled_);
    for (const TransferId id : resumed) {
        const auto found = jobs_.find(id);
        if (found != jobs_.end() && found->second->exchange && found->second->exchange->paused()) {
            found->second->exchange->set_running();
            curl_easy_pause(found->second->exchange->easy(), CURLPAUSE_CONT);
        }
    }
    for (const TransferId id : cancelled) {
        if (const auto found = jobs_.find(id); found != jobs_.end()) {
            Outcome outcome;
            outcome.kind = Outcome::Kind::stopped;
            complete(id, std::move(outcome));
        }
    }
}

bool Http::Engine::handle_ended() {
    bool any = false;
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
        if (message->msg == CURLMSG_DONE) {
            void* job = nullptr;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &job);
            ended(*static_cast<Job*>(job), message->data.result);
            any = true;
        }
    }
    return any;
}

// curl's own measure of speed is an average over seconds; this one is exact.
bool Http::Engine::end_silent() {
    const Time now = std::chrono::steady_clock::now();
    const auto unseen = now - silence_checked_;
    if (unseen < longest_sleep) {
        return false;
    }
    silence_checked_ = now;
    // A callback that took long, or a machine that was asleep, is not the host's fault.
    if (unseen > 10 * longest_sleep) {
        for (auto& [id, job] : jobs_) {
            if (job->exchange) {
                job->exchange->pardon(unseen);
            }
        }
        return false;
    }
    const auto silent = std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
        return entry.second->exchange && entry.second->exchange->is_silent(now);
    });
    if (silent == jobs_.end()) {
        return false;
    }
    // The others in the next round: what a callback does may end them.
    silence_checked_ = now - longest_sleep;
    ended(*silent->second, CURLE_OPERATION_TIMEDOUT);
    return true;
}

void Http::Engine::wait() {
    if (jobs_.empty()) {
        return;
    }
    const Time now = clock_.now();
    auto sleep = longest_sleep;
    std::optional<Time> next;
    const auto consider = [&](Time time) {
        if (time > now && (!next || time < *next)) {
            next = time;
        }
    };
    if (!due_.empty()) {
        consider(due_.begin()->first);
    }
    for (const auto& [origin, host] : hosts_) {
        if (!host.waiting.empty()) {
            consider(host.closed_until);
        }
    }
    if (next) {
        const auto left = std::chrono::ceil<milliseconds>(*next - now);
        if (on_wire_ == 0 && clock_.skip(left)) {
            return;
        }
        sleep = std::min(sleep, left);
    }
    curl_multi_poll(multi_, nullptr, 0, static_cast<int>(sleep.count()), nullptr);
}

void Http::Engine::detach(Job& job) {
    if (!job.exchange) {
        return;
    }
    curl_multi_remove_handle(multi_, job.exchange->easy());
    spare_.push_back(job.exchange->take_easy());
    job.exchange.reset();
    --hosts_[job.origin].active;
    --on_wire_;
}

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
        // A refusal counts, even if the text that goes with it is cut.
        outcome.kind = Outcome::Kind::refused;
        outcome.failure = Failure::none;
        outcome.reason.clear();
        // At another host, the right to a file may have ended while it waited: the Hub gives
        // another.
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
    // Who was never there will not be there in two seconds.
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
    // From the start: where it was redirected to may be valid for a moment only.
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

void Http::Engine::interrupt() {
    while (!jobs_.empty()) {
        Outcome outcome;
        outcome.kind = Outcome::Kind::interrupted;
        complete(jobs_.begin()->first, std::move(outcome));
    }
}

void Http::Engine::abandon() {
    for (auto& [id, job] : jobs_) {
        detach(*job);
    }
    jobs_.clear();
    hosts_.clear();
    due_.clear();
    resumed_.clear();
    cancelled_.clear();
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
