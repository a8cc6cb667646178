#pragma once
// One request on the wire and its answer: curl's easy interface. No retries, no redirects.

#include <curl/curl.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "hub/http.h"

namespace twinkle::hub {

struct FreeEasy {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;

class Exchange {
public:
    // `at_hub`: to the endpoint's origin, with token and the request's own headers.
    Exchange(Easy easy, const Settings& settings, const Transfer& transfer, const std::string& url,
             const Headers& hub_headers, bool at_hub);
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    CURL* easy() const { return easy_.get(); }
    Easy take_easy() { return std::move(easy_); }

    // Called once curl has ended it: fills in what only then is known.
    void finish(CURLcode code);

    using Time = std::chrono::steady_clock::time_point;

    // Whether nothing has arrived for longer than the settings allow.
    bool is_silent(Time now) const;
    // Whether the headers of the answer take longer than the settings allow.
    bool is_slow_head(Time now) const;
    std::chrono::seconds longest_head() const;
    // When bytes could first arrive: it is connected, and not paused. None: they cannot.
    std::optional<Time> running_since() const;
    void pardon(std::chrono::steady_clock::duration time) {
        last_sign_ += time;
        running_since_ += time;
    }
    // The engine ends it for this reason.
    void give_up(Failure failure, std::string reason) {
        failure_ = failure;
        reason_ = std::move(reason);
    }

    // About the answer, once finished or seen by a callback:
    const Head& head() const { return head_; }
    const std::string& body() const { return body_; }  // only of answers that are not 2xx
    std::uint64_t received() const { return received_; }
    std::uint64_t body_bytes() const { return body_bytes_; }  // of any answer, wanted or not
    bool stopped() const { return stopped_; }                 // by a callback
    bool paused() const { return paused_; }
    void set_running() {
        paused_ = false;
        last_sign_ = running_since_ = std::chrono::steady_clock::now();
    }
    Failure failure() const { return failure_; }
    const std::string& reason() const { return reason_; }
    std::exception_ptr thrown() const { return thrown_; }
    std::chrono::milliseconds duration() const { return duration_; }

private:
    static std::size_t header_entry(char* data, std::size_t, std::size_t size, void* self);
    static std::size_t body_entry(char* data, std::size_t, std::size_t size, void* self);
    bool take_header(std::string_view line);
    std::size_t take_body(std::string_view bytes);
    bool end_of_head();
    void add_header(const std::string& line);
    void set_up(const Request& request);
    void set_up_headers(const Request& request);
    void set_up_patience(const Request& request);
    void set_up_connection();
    bool refuse_head(std::string reason);
    std::chrono::seconds patience() const;
    std::chrono::microseconds time_to_connect() const;

    Easy easy_;
    const Settings& settings_;
    const Transfer& transfer_;
    const bool at_hub_;
    curl_slist* headers_ = nullptr;
    Head head_;
    std::string body_;
    std::size_t header_bytes_ = 0;
    bool head_complete_ = false;
    bool enough_ = false;  // enough read of an unwanted body
    bool stopped_ = false;
    bool paused_ = false;
    std::uint64_t received_ = 0;
    std::uint64_t body_bytes_ = 0;
    int interim_answers_ = 0;
    Time last_sign_ = std::chrono::steady_clock::now();
    Time running_since_ = last_sign_;
    Failure failure_ = Failure::none;
    std::string reason_;
    std::exception_ptr thrown_;
    std::chrono::milliseconds duration_{0};
};

}  // namespace twinkle::hub
