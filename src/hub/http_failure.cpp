#include "hub/http_failure.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace twinkle::hub {
namespace {

std::string connect_reason(CURL* easy) {
    long number = 0;
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &number);
    switch (number) {
        case 0: return "no connection to the host";
        case ECONNREFUSED: return "the host refuses the connection";
        case ENETUNREACH:
        case EHOSTUNREACH: return "there is no route to the host";
        default: return std::system_category().message(static_cast<int>(number));
    }
}

std::string timeout_reason(CURL* easy, const Settings& settings, bool download) {
    curl_off_t first_byte = 0, connected = 0;
    curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &connected);
    curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &first_byte);
    if (connected == 0) {
        return fmt::format("no connection within {} s", settings.etag_timeout.count());
    }
    const auto patience = download ? settings.download_timeout : settings.etag_timeout;
    return first_byte == 0 ? fmt::format("no answer within {} s", patience.count())
                           : "the answer has stopped or is too slow";
}

}  // namespace

CurlReport report_of(CURL* easy, CURLcode code, const Settings& settings, bool download) {
    switch (code) {
        case CURLE_OK: return {};
        case CURLE_COULDNT_RESOLVE_HOST:
            return {Failure::dns, "no address is known for the name of the host"};
        case CURLE_COULDNT_RESOLVE_PROXY:
            return {Failure::proxy, "no address is known for the name of the proxy"};
        case CURLE_PROXY: return {Failure::proxy, "the proxy refuses the connection"};
        case CURLE_COULDNT_CONNECT: return {Failure::connect, connect_reason(easy)};
        case CURLE_OPERATION_TIMEDOUT:
            return {Failure::timeout, timeout_reason(easy, settings, download)};
        case CURLE_PEER_FAILED_VERIFICATION:
            return {Failure::tls, "its certificate is not trusted, or is for another host"};
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_SSL_CIPHER:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_ISSUER_ERROR: return {Failure::tls, "no agreement on a TLS connection"};
        case CURLE_SSL_CACERT_BADFILE:
            return {Failure::tls, "the file of trusted certificates cannot be read"};
        case CURLE_PARTIAL_FILE:
            return {Failure::broken, "the answer ends before its announced length"};
        case CURLE_GOT_NOTHING:
            return {Failure::broken, "the connection was closed without an answer"};
        case CURLE_RECV_ERROR:
        case CURLE_SEND_ERROR:
        case CURLE_HTTP2:
        case CURLE_HTTP2_STREAM: return {Failure::broken, "the connection was lost"};
        case CURLE_OUT_OF_MEMORY: return {Failure::protocol, "its headers are too large"};
        default:
            return {Failure::protocol, std::string("it does not speak HTTP properly (") +
                                           curl_easy_strerror(code) + ")"};
    }
}

bool is_transient(Failure failure) {
    switch (failure) {
        case Failure::dns:
        case Failure::proxy:
        case Failure::connect:
        case Failure::timeout:
        case Failure::slow:
        case Failure::broken: return true;
        default: return false;
    }
}

std::string hint_for(Failure failure, const Settings& settings) {
    const bool proxied = !settings.proxies.http.empty() || !settings.proxies.https.empty();
    const std::string proxy = proxied ? " and the proxy (http_proxy, https_proxy, no_proxy)" : "";
    const std::string offline = "; --offline works with what is cached";
    switch (failure) {
        case Failure::dns:
        case Failure::connect: return "check the network, HF_ENDPOINT" + proxy + offline;
        case Failure::proxy: return "check http_proxy, https_proxy and no_proxy" + offline;
        case Failure::tls:
            return "CURL_CA_BUNDLE or SSL_CERT_FILE names the certificates to trust, of a "
                   "company's "
                   "proxy for instance" +
                   offline;
        case Failure::timeout:
            return "try again; HF_HUB_DOWNLOAD_TIMEOUT and HF_HUB_ETAG_TIMEOUT are the patience in "
                   "seconds" +
                   offline;
        case Failure::slow:
            return "try again: what has arrived is kept; TWINKLE_LOW_SPEED_LIMIT (bytes a second) "
                   "and TWINKLE_LOW_SPEED_TIME (seconds) allow a slower network" +
                   offline;
        case Failure::broken: return "try again: what has arrived is kept";
        case Failure::protocol:
        case Failure::redirect:
            return "is HF_ENDPOINT a Hub?" + std::string(proxied ? " Check the proxy" : "");
        default: return "";
    }
}

}  // namespace twinkle::hub
