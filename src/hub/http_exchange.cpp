#include "hub/http_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "hub/http_failure.h"
#include "twinkle/error.h"

namespace twinkle::hub {
namespace {

constexpr std::size_t largest_head = 256 << 10;
constexpr std::size_t most_headers = 1000;
constexpr std::size_t kept_body = 64 << 10;
// Limit on 100, 102 and 103 before the answer: a server has reason for a few.
constexpr int most_interim_answers = 16;

bool is_success(int status) {
    return status >= 200 && status < 300;
}

template <typename Value>
void set(CURL* easy, CURLoption option, Value value) {
    if (curl_easy_setopt(easy, option, value) == CURLE_OUT_OF_MEMORY) {
        throw std::bad_alloc();
    }
}

std::string range_text(const ByteRange& range) {
    return range.last ? fmt::format("{}-{}", range.first, *range.last)
                      : fmt::format("{}-", range.first);
}

}  // namespace

Exchange::Exchange(Easy easy, const Settings& settings, const Transfer& transfer,
                   const std::string& url, const Headers& hub_headers, bool at_hub)
    : easy_(std::move(easy)), settings_(settings), transfer_(transfer), at_hub_(at_hub) {
    head_.url = url;
    head_.hub_headers = hub_headers;
    curl_easy_reset(easy_.get());
    set_up(transfer.request);
    set_up_headers(transfer.request);
    set_up_patience(transfer.request);
    set_up_connection();
}

Exchange::~Exchange() {
    easy_.reset();
    for (curl_slist* item = headers_; item != nullptr; item = item->next) {
        wipe(item->data, std::char_traits<char>::length(item->data));
    }
    curl_slist_free_all(headers_);
}

void Exchange::add_header(const std::string& line) {
    curl_slist* const longer = curl_slist_append(headers_, line.c_str());
    if (longer == nullptr) {
        throw std::bad_alloc();
    }
    headers_ = longer;
}

void Exchange::set_up(const Request& request) {
    CURL* const easy = easy_.get();
    set(easy, CURLOPT_URL, head_.url.c_str());
    set(easy, CURLOPT_NOBODY, request.method == "HEAD" ? 1L : 0L);
    if (request.range) {
        set(easy, CURLOPT_RANGE, range_text(*request.range).c_str());
    }
    set(easy, CURLOPT_HEADERFUNCTION, &Exchange::header_entry);
    set(easy, CURLOPT_HEADERDATA, static_cast<void*>(this));
    set(easy, CURLOPT_WRITEFUNCTION, &Exchange::body_entry);
    set(easy, CURLOPT_WRITEDATA, static_cast<void*>(this));
    set(easy, CURLOPT_BUFFERSIZE, request.download ? 512L << 10 : 32L << 10);
}

void Exchange::set_up_headers(const Request& request) {
    CURL* const easy = easy_.get();
    if (request.compressed) {
        set(easy, CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
    } else {
        add_header("Accept-Encoding: identity");
    }
    if (!settings_.user_agent.empty()) {
        set(easy, CURLOPT_USERAGENT, settings_.user_agent.c_str());
    }
    if (at_hub_) {
        for (const auto& [name, value] : request.headers) {
            add_header(name + ": " + value);
        }
    }
    if (at_hub_ && !settings_.token.empty()) {
        std::string line = "Authorization: Bearer ";
        line.reserve(line.size() + settings_.token.reveal().size());
        line += settings_.token.reveal();
        add_header(line);
        wipe(line.data(), line.size());
    }
    set(easy, CURLOPT_HTTPHEADER, headers_);
    set(easy, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
}

void Exchange::set_up_patience(const Request& request) {
    CURL* const easy = easy_.get();
    set(easy, CURLOPT_CONNECTTIMEOUT, static_cast<long>(settings_.etag_timeout.count()));
    // The engine watches for silence and slowness; a small answer needs a total limit, too.
    if (!request.download) {
        set(easy, CURLOPT_TIMEOUT, 6 * static_cast<long>(settings_.etag_timeout.count()));
    }
}

void Exchange::set_up_connection() {
    CURL* const easy = easy_.get();
#if LIBCURL_VERSION_NUM >= 0x075500
    set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    set(easy, CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    // Ctrl-C must not wait for the name server.
    set(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    set(easy, CURLOPT_FOLLOWLOCATION, 0L);
    set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    set(easy, CURLOPT_NOSIGNAL, 1L);
    set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (!settings_.ca_file.empty()) {
        set(easy, CURLOPT_CAINFO, settings_.ca_file.c_str());
        set(easy, CURLOPT_PROXY_CAINFO, settings_.ca_file.c_str());
    }
    if (!settings_.ca_folder.empty()) {
        set(easy, CURLOPT_CAPATH, settings_.ca_folder.c_str());
        set(easy, CURLOPT_PROXY_CAPATH, settings_.ca_folder.c_str());
    }
    // Set even if there is none: otherwise curl would read the process's environment.
    const bool tls = head_.url.starts_with("https:");
    // A second request waits to see whether the first TLS handshake offers HTTP/2, which carries
    // both. Without TLS there is nothing to wait for.
    set(easy, CURLOPT_PIPEWAIT, tls ? 1L : 0L);
    set(easy, CURLOPT_PROXY, (tls ? settings_.proxies.https : settings_.proxies.http).c_str());
    set(easy, CURLOPT_NOPROXY, settings_.proxies.none.c_str());
}

std::size_t Exchange::header_entry(char* data, std::size_t, std::size_t size, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    try {
        return exchange.take_header({data, size}) ? size : 0;
    } catch (...) {
        exchange.thrown_ = std::current_exception();
        return 0;
    }
}

std::size_t Exchange::body_entry(char* data, std::size_t, std::size_t size, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    try {
        return exchange.take_body({data, size});
    } catch (...) {
        exchange.thrown_ = std::current_exception();
        return 0;
    }
}

bool Exchange::take_header(std::string_view line) {
    last_sign_ = std::chrono::steady_clock::now();
    if (head_complete_) {
        return true;  // a trailer
    }
    header_bytes_ += line.size();
    if (header_bytes_ > largest_head || head_.headers.size() > most_headers) {
        return refuse_head("its headers are too large");
    }
    while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) {
        line.remove_suffix(1);
    }
    if (line.empty()) {
        return end_of_head();
    }
    if (line.starts_with("HTTP/")) {
        head_.headers = Headers();  // drops those of a 1xx before it
        const bool interim = line.substr(std::min(line.find(' '), line.size())).starts_with(" 1");
        interim_answers_ += interim ? 1 : 0;
        return interim_answers_ <= most_interim_answers ||
               refuse_head("it announces an answer again and again, and gives none");
    }
    const bool folded = line.front() == ' ' || line.front() == '\t';
    if (const auto colon = line.find(':'); !folded && colon != std::string_view::npos) {
        head_.headers.add(line.substr(0, colon), line.substr(colon + 1));
    }
    return true;
}

bool Exchange::end_of_head() {
    long status = 0, version = 0, connects = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy_.get(), CURLINFO_HTTP_VERSION, &version);
    curl_easy_getinfo(easy_.get(), CURLINFO_NUM_CONNECTS, &connects);
    if (status < 200) {
        return true;
    }
    head_complete_ = true;
    head_.status = static_cast<int>(status);
    head_.http_version = version == CURL_HTTP_VERSION_2_0   ? 20
                         : version == CURL_HTTP_VERSION_1_0 ? 10
                                                            : 11;
    head_.reused = connects == 0;
    if (at_hub_) {
        head_.hub_headers = head_.headers;
    }
    if (is_success(head_.status) && transfer_.on_head && transfer_.on_head(head_) == Flow::stop) {
        stopped_ = true;
        return false;
    }
    return true;
}

std::size_t Exchange::take_body(std::string_view bytes) {
    last_sign_ = std::chrono::steady_clock::now();
    body_bytes_ += bytes.size();
    if (!is_success(head_.status)) {
        const auto room = kept_body - std::min(kept_body, body_.size());
        body_.append(bytes.substr(0, room));
        // Draining a longer body costs more than the connection is worth.
        enough_ = room < bytes.size();
        return enough_ ? 0 : bytes.size();
    }
    const Flow flow = transfer_.on_data ? transfer_.on_data(bytes) : Flow::more;
    switch (flow) {
        case Flow::more: received_ += bytes.size(); return bytes.size();
        case Flow::pause:
            paused_ = true;
            body_bytes_ -= bytes.size();  // they come again
            return CURL_WRITEFUNC_PAUSE;
        default: stopped_ = true; return 0;
    }
}

bool Exchange::refuse_head(std::string reason) {
    give_up(Failure::protocol, std::move(reason));
    return false;
}

std::chrono::seconds Exchange::patience() const {
    return transfer_.request.download ? settings_.download_timeout : settings_.etag_timeout;
}

// 0: it is not connected yet.
std::chrono::microseconds Exchange::time_to_connect() const {
    curl_off_t microseconds = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_PRETRANSFER_TIME_T, &microseconds);
    return std::chrono::microseconds(microseconds);
}

bool Exchange::is_silent(Time now) const {
    auto longest = patience();
    if (time_to_connect().count() == 0) {
        longest += settings_.etag_timeout;  // to connect, which curl watches
    }
    return !paused_ && now - last_sign_ > longest;
}

std::chrono::seconds Exchange::longest_head() const {
    return std::max(settings_.low_speed_time, patience());
}

bool Exchange::is_slow_head(Time now) const {
    const auto connect = time_to_connect();
    return !head_complete_ && connect.count() != 0 &&
           now - running_since_ > connect + longest_head();
}

std::optional<Exchange::Time> Exchange::running_since() const {
    const bool connected = head_complete_ || time_to_connect().count() != 0;
    return connected && !paused_ ? std::optional(running_since_) : std::nullopt;
}

void Exchange::finish(CURLcode code) {
    curl_off_t microseconds = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_TOTAL_TIME_T, &microseconds);
    duration_ = std::chrono::milliseconds(microseconds / 1000);
    if (failure_ != Failure::none || stopped_ || thrown_ || (enough_ && head_complete_)) {
        return;
    }
    const auto report = report_of(easy_.get(), code, settings_, transfer_.request.download);
    failure_ = report.failure;
    reason_ = report.reason;
    if (failure_ == Failure::none && !head_complete_) {
        failure_ = Failure::broken;
        reason_ = "the connection was closed within the headers";
    }
}

}  // namespace twinkle::hub
