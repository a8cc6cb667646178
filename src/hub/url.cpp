#include "hub/url.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

#include "base/text.h"

namespace twinkle::hub {
namespace {

constexpr std::size_t longest_url = 16 << 10;

struct Free {
    void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, Free>;

// Parses as curl does when it connects: the host that is compared is the host that is contacted.
Url parse(const std::string& text) {
    Url url(curl_url());
    const bool sane = text.size() <= longest_url &&
                      std::none_of(text.begin(), text.end(),
                                   [](unsigned char c) { return c <= ' ' || c == 0x7f; });
    if (!url || !sane ||
        curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME) !=
            CURLUE_OK) {
        return nullptr;
    }
    return url;
}

std::string part(const Url& url, CURLUPart which, unsigned flags = 0) {
    char* text = nullptr;
    if (curl_url_get(url.get(), which, &text, flags) != CURLUE_OK) {
        return {};
    }
    std::string result(text);
    curl_free(text);
    return result;
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
}

bool is_web(const Url& url) {
    const std::string scheme = lower(part(url, CURLUPART_SCHEME));
    return (scheme == "http" || scheme == "https") && !part(url, CURLUPART_HOST).empty();
}

}  // namespace

std::optional<std::string> origin_of(std::string_view text) {
    const Url url = parse(std::string(text));
    if (!url || !is_web(url)) {
        return std::nullopt;
    }
    return lower(part(url, CURLUPART_SCHEME)) + "://" + lower(part(url, CURLUPART_HOST)) + ":" +
           part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

std::optional<std::string> resolve_url(const std::string& base, const std::string& target) {
    const bool sane = target.size() <= longest_url &&
                      std::none_of(target.begin(), target.end(),
                                   [](unsigned char c) { return c <= ' ' || c == 0x7f; });
    const Url url = parse(base);
    if (!url || !sane ||
        curl_url_set(url.get(), CURLUPART_URL, target.c_str(), CURLU_NON_SUPPORT_SCHEME) !=
            CURLUE_OK ||
        !is_web(url)) {
        return std::nullopt;
    }
    // Drops user and password: only the user may supply them.
    curl_url_set(url.get(), CURLUPART_USER, nullptr, 0);
    curl_url_set(url.get(), CURLUPART_PASSWORD, nullptr, 0);
    curl_url_set(url.get(), CURLUPART_FRAGMENT, nullptr, 0);
    return part(url, CURLUPART_URL);
}

std::string redacted_url(std::string_view text) {
    const Url url = parse(std::string(text));
    if (!url || !is_web(url)) {
        return "(not a URL)";
    }
    const std::string port = part(url, CURLUPART_PORT);
    return base::printable(part(url, CURLUPART_SCHEME) + "://" + part(url, CURLUPART_HOST) +
                           (port.empty() ? "" : ":" + port) + part(url, CURLUPART_PATH));
}

std::string quote(std::string_view text, std::string_view keep) {
    static constexpr std::string_view plain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    static constexpr std::string_view digits = "0123456789ABCDEF";
    std::string result;
    for (const char c : text) {
        if (plain.find(c) != std::string_view::npos || keep.find(c) != std::string_view::npos) {
            result += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            result += {'%', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return result;
}

}  // namespace twinkle::hub
