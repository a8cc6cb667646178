#pragma once
// Runs many transfers at once: which may start, which redirects are followed, what is retried and
// when.

#include <curl/curl.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hub/http.h"
#include "hub/http_exchange.h"

namespace twinkle::hub {

class Http::Engine {
public:
    Engine(const Settings& settings, HttpOptions options);
    ~Engine();

    TransferId start(Transfer transfer);
    void run();
    void resume(TransferId id) { resumed_.push_back(id); }
    void cancel(TransferId id) { cancelled_.push_back(id); }
    void post(std::function<void()> function);
    std::uint64_t requests() const { return requests_; }

private:
    using Time = std::chrono::steady_clock::time_point;

    struct Host {
        std::deque<TransferId> waiting;
        int active = 0;
        bool multiplexes = false;
        bool answered = false;
        Time closed_until{};  // it has asked to be left alone
    };

    // A transfer is in its host's queue, on the wire (exchange) or waiting for a retry
    // (due).
    struct Job {
        TransferId id = 0;
        Transfer transfer;
        std::string url, origin;  // of this hop
        bool left_hub = false;    // some hop was elsewhere: never the token again
        int hops = 0;
        int attempts = 0;
        int failures = 0;  // in a row
        Time first_failure{};
        std::uint64_t received = 0;
        Headers hub_headers;
        std::unique_ptr<Exchange> exchange;
    };

    void enqueue(Job& job, bool first);
    void fill();
    void begin(Job& job, Host& host);
    void work();
    void wait();
    void requeue_due();
    void take_posted();
    void apply_requests();
    bool handle_ended();
    bool end_silent();
    Job* find_silent(Time now);
    Job* find_slow(Time now);
    std::uint64_t body_bytes() const;
    void ended(Job& job, CURLcode code);
    // The first two return true if the transfer has ended, the last if it will be retried.
    bool judge(Job& job, Outcome& outcome);
    bool redirect(Job& job, Outcome& outcome);
    bool again(Job& job, const Outcome& outcome);
    void detach(Job& job);
    void complete(TransferId id, Outcome outcome);
    void abandon();
    void interrupt();
    void log(const Job& job, const Exchange& exchange) const;
    bool stopping() const { return options_.stop != nullptr && options_.stop->load(); }
    int limit(const Host& host) const;

    const Settings& settings_;
    const std::string endpoint_origin_;
    HttpOptions options_;
    Clock system_clock_;
    Clock& clock_;
    CURLM* multi_ = nullptr;
    std::vector<Easy> spare_;
    std::map<TransferId, std::unique_ptr<Job>> jobs_;
    std::map<std::string, Host> hosts_;
    std::multimap<Time, TransferId> due_;
    std::vector<TransferId> resumed_, cancelled_;
    std::mutex posted_mutex_;
    std::vector<std::function<void()>> posted_;
    TransferId next_id_ = 1;
    std::uint64_t requests_ = 0;
    int on_wire_ = 0;
    Time silence_checked_{};
    // State of the least rate: bytes received when the window began.
    Time window_start_{};
    std::uint64_t window_bytes_ = 0;
    std::uint64_t ended_bytes_ = 0;  // of transfers that have ended
    bool running_ = false;
};

}  // namespace twinkle::hub
