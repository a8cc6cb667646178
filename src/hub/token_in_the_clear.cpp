#include "hub/token_in_the_clear.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "base/text.h"
#include "hub/url.h"
#include "twinkle/error.h"

namespace twinkle::hub {
namespace {

// The host of "http://user@host:port/path"; for an address in brackets, their content.
std::string host_of(std::string_view url) {
    if (const auto scheme = url.find("://"); scheme != std::string_view::npos) {
        url.remove_prefix(scheme + 3);
    }
    url = url.substr(0, url.find('/'));
    if (const auto at = url.rfind('@'); at != std::string_view::npos) {
        url.remove_prefix(at + 1);
    }
    if (url.starts_with('[')) {
        return std::string(url.substr(1, url.find(']') - 1));
    }
    return std::string(url.substr(0, url.find(':')));
}

// Whether it is this machine, whatever a name server says.
bool is_loopback(const std::string& host) {
    in_addr four{};
    in6_addr six{};
    if (::inet_pton(AF_INET, host.c_str(), &four) == 1) {
        return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    return host == "localhost" ||
           (::inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six) != 0);
}

bool uses_proxy(const Settings& settings, const std::string& host) {
    const auto direct = base::split(settings.proxies.none, ',');
    return !settings.proxies.http.empty() &&
           std::none_of(direct.begin(), direct.end(),
                        [&](const std::string& name) { return name == host || name == "*"; });
}

}  // namespace

void refuse_token_in_the_clear(const Settings& settings) {
    const std::string host = host_of(settings.endpoint);
    const bool stays_here = is_loopback(host) && (!uses_proxy(settings, host) ||
                                                  is_loopback(host_of(settings.proxies.http)));
    if (settings.token.empty() || settings.token_over_http || stays_here ||
        settings.endpoint.starts_with("https:")) {
        return;
    }
    throw Error(ErrorCode::refused,
                {.what = "refused to send the token without encryption",
                 .where = redacted_url(settings.endpoint),
                 .why = "everybody between here and there could read it",
                 .hint = "write HF_ENDPOINT with https; TWINKLE_TOKEN_OVER_HTTP=1 sends it all the "
                         "same, HF_HUB_DISABLE_IMPLICIT_TOKEN=1 sends none"});
}

}  // namespace twinkle::hub
