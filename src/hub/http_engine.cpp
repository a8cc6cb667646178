#include "hub/http_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <stdexcept>

#include "hub/url.h"

namespace twinkle::hub {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds longest_sleep{100};  // an interrupt is seen this soon

void start_curl() {
    static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (code != CURLE_OK) {
        throw Error(ErrorCode::failed, {.what = "cannot start the HTTP library",
                                        .where = "",
                                        .why = curl_easy_strerror(code),
                                        .hint = ""});
    }
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

// The loop: these steps in this order, until no transfer is left.
void Http::Engine::run() {
    if (running_) {
        throw std::logic_error("Http::run() within a callback of itself");
    }
    running_ = true;
    silence_checked_ = window_start_ = std::chrono::steady_clock::now();
    window_bytes_ = body_bytes();
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

// Applies cancels and resumes here: curl allows neither within its callbacks.
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

// Measures exactly; curl's own speed is an average over seconds.
bool Http::Engine::end_silent() {
    const Time now = std::chrono::steady_clock::now();
    const auto unseen = now - silence_checked_;
    if (unseen < longest_sleep) {
        return false;
    }
    silence_checked_ = now;
    // A slow callback, or a suspended machine, is not the host's fault.
    if (unseen > 10 * longest_sleep) {
        for (auto& [id, job] : jobs_) {
            if (job->exchange) {
                job->exchange->pardon(unseen);
            }
        }
        window_start_ += unseen;
        return false;
    }
    Job* found = find_silent(now);
    if (found == nullptr && (found = find_slow(now)) == nullptr) {
        return false;
    }
    // The others follow in the next round: a callback may end them.
    silence_checked_ = now - longest_sleep;
    ended(*found, CURLE_OPERATION_TIMEDOUT);
    return true;
}

Http::Engine::Job* Http::Engine::find_silent(Time now) {
    const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
        return entry.second->exchange && entry.second->exchange->is_silent(now);
    });
    return found == jobs_.end() ? nullptr : found->second.get();
}

// Uses the rate of all transfers together, because many share a slow network.
Http::Engine::Job* Http::Engine::find_slow(Time now) {
    const auto seconds = settings_.low_speed_time;
    for (const auto& [id, job] : jobs_) {
        if (job->exchange && job->exchange->is_slow_head(now)) {
            job->exchange->give_up(Failure::slow,
                                   fmt::format("the Hub is too slow: no whole headers within {} s",
                                               job->exchange->longest_head().count()));
            return job.get();
        }
    }
    const bool idle = std::none_of(jobs_.begin(), jobs_.end(), [](const auto& entry) {
        return entry.second->exchange && entry.second->exchange->running_since();
    });
    if (!idle && now - window_start_ < seconds) {
        return nullptr;
    }
    const std::uint64_t bytes = body_bytes() - window_bytes_;
    const bool slow =
        !idle && bytes / static_cast<std::uint64_t>(seconds.count()) < settings_.low_speed_limit;
    for (const auto& [id, job] : jobs_) {
        const auto since = job->exchange ? job->exchange->running_since() : std::nullopt;
        // The window started when it was first checked, a moment after the transfer.
        if (slow && since && *since <= window_start_ + milliseconds(seconds) / 10) {
            job->exchange->give_up(
                Failure::slow,
                fmt::format("the Hub is too slow: {} bytes within {} s, less than {} a second",
                            bytes, seconds.count(), settings_.low_speed_limit));
            return job.get();  // the window stays: the others that are as slow come next
        }
    }
    window_start_ = now;
    window_bytes_ += bytes;
    return nullptr;
}

std::uint64_t Http::Engine::body_bytes() const {
    std::uint64_t bytes = ended_bytes_;
    for (const auto& [id, job] : jobs_) {
        bytes += job->exchange ? job->exchange->body_bytes() : 0;
    }
    return bytes;
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
    ended_bytes_ += job.exchange->body_bytes();
    curl_multi_remove_handle(multi_, job.exchange->easy());
    spare_.push_back(job.exchange->take_easy());
    job.exchange.reset();
    --hosts_[job.origin].active;
    --on_wire_;
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

}  // namespace twinkle::hub
