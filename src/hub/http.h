#pragma once
// HTTP for the Hub: libcurl's multi interface behind one class. Connections are reused, HTTP/2 is
// used where it is offered, many transfers run at once. Everything happens on the thread that calls
// send() or run(); only post() may be called from others.
//
// The token goes to the endpoint's origin and nowhere else: redirects are followed here, not by
// curl, and another origin gets neither it nor any header of the request but Range and
// Accept-Encoding.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hub/headers.h"
#include "hub/retry.h"
#include "hub/settings.h"
#include "twinkle/error.h"

namespace twinkle::hub {

struct ByteRange {
    std::uint64_t first = 0;
    std::optional<std::uint64_t> last;  // inclusive; none: to the end
};

enum class Redirects {
    follow,       // to any host
    same_origin,  // others are an answer: status 3xx with its Location
};

struct Request {
    std::string method = "GET";  // or HEAD
    std::string url{};
    std::vector<std::pair<std::string, std::string>> headers{};  // further ones
    std::optional<ByteRange> range{};
    Redirects redirects = Redirects::follow;
    bool compressed = false;  // may the answer be? never for files
    bool download = false;    // patience and buffers as for a large file
};

// The part of an answer before its body.
struct Head {
    int status = 0;
    std::string url;  // that answered, after redirects; may carry a signature: show redacted_url
    Headers headers;  // of the last answer
    Headers hub_headers;   // of the last answer of the endpoint's origin: X-Repo-Commit, X-Linked-*
    int http_version = 0;  // 10, 11, 20
    bool reused = false;   // an existing connection
    // The whole size of the file: from Content-Range, else Content-Length of a 200.
    std::optional<std::uint64_t> total_size() const;
};

// Why there is no answer.
enum class Failure {
    none,
    dns,
    proxy,
    connect,
    tls,
    timeout,
    slow,      // something comes, but too little
    broken,    // reset, cut, or shorter than announced
    protocol,  // not HTTP, or headers beyond any measure
    redirect,  // too many, to nowhere, or from https to http
    too_large,
};

struct Outcome {
    enum class Kind {
        done,         // a status of 2xx, and all of its body went to on_data
        refused,      // any other status; the first 64 KiB of the body are in `body`
        failed,       // no answer, or a broken one: `failure` and `reason`
        stopped,      // by on_head, on_data or cancel()
        interrupted,  // the stop flag
    };
    Kind kind = Kind::failed;
    Head head;  // of the last answer; status 0: there was none
    std::string body;
    Failure failure = Failure::none;
    std::string reason;          // in plain words, without secrets
    int attempts = 0;            // all of them
    std::uint64_t received = 0;  // bytes given to on_data, over all attempts
};

enum class Flow {
    more,
    pause,  // this piece was not taken: it comes again after resume()
    stop,
};

using TransferId = std::uint64_t;

struct Transfer {
    Request request;
    // Called before the first byte of an answer with status 2xx, once per attempt: after a retry
    // the body starts at the range of that attempt's request. Stop: the body is not wanted.
    std::function<Flow(const Head&)> on_head;
    std::function<Flow(std::string_view)> on_data;
    // Called once, at the end. May start further transfers.
    std::function<void(const Outcome&)> on_done;
    // Called before a retry: may change the request, for instance its range to what is still
    // missing. False: no retry. Without it, a transfer is retried only as long as on_data has
    // received nothing.
    std::function<bool(Request&)> on_retry;
    bool urgent = false;  // before what waits already
};

// A transfer with a small answer: `on_done` gets all of it, or the text of a refusal. More than
// `limit` bytes, decompressed, are a failure.
Transfer small_transfer(Request request, std::size_t limit,
                        std::function<void(const Outcome&, std::string& body)> on_done);

struct Response {
    Head head;
    std::string body;
    int attempts = 0;
    int status() const { return head.status; }
};

struct HttpOptions {
    RetryPolicy retry{};
    Clock* clock = nullptr;                         // the system's
    const std::atomic<bool>* stop = nullptr;        // true: everything ends within 100 ms
    std::function<void(const std::string&)> log{};  // one line per attempt, redacted
    int connections_per_host = 16;                  // HTTP/1.1
    int streams_per_host = 64;                      // HTTP/2
};

class Http {
public:
    explicit Http(const Settings& settings, HttpOptions options = {});
    ~Http();
    Http(const Http&) = delete;
    Http& operator=(const Http&) = delete;

    // One small answer of any status. Throws Error(unreachable) if there is none or it is larger
    // than `limit`, Error(interrupted) at the stop flag.
    Response send(Request request, std::size_t limit = 8u << 20);

    // Many at once. start() only queues; run() works until all are done. An exception in a callback
    // ends all transfers (without on_done) and leaves run().
    TransferId start(Transfer transfer);
    void run();
    void resume(TransferId id);
    void cancel(TransferId id);

    // Callable from any thread: the thread in run() soon calls the function. run() does not wait
    // for it.
    void post(std::function<void()> function);

    // The number of attempts that have reached the network.
    std::uint64_t requests() const;

    // Error(unreachable) or Error(interrupted) for an outcome without an answer: what failed, the
    // redacted URL, why, and what to do.
    Error error_of(const Outcome& outcome, std::string what, const std::string& url) const;

private:
    class Engine;
    Engine& engine();

    const Settings settings_;
    HttpOptions options_;
    std::unique_ptr<Engine> engine_;  // at the first request: TLS takes milliseconds to set up
};

}  // namespace twinkle::hub
