#include "hub/settings.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "hub/authorities.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::hub {
namespace {

constexpr std::size_t longest_token = 4096;
constexpr std::string_view white_space = " \t\r\n\v\f";

std::string trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(white_space);
    return first == std::string_view::npos
               ? std::string()
               : std::string(text.substr(first, text.find_last_not_of(white_space) - first + 1));
}

class Environment {
public:
    explicit Environment(const target::Machine& machine) : machine_(machine) {}

    // An empty variable counts as absent.
    std::optional<std::string> get(const char* name) const {
        auto value = machine_.environment(name);
        return value && !value->empty() ? value : std::nullopt;
    }
    std::string first(std::initializer_list<const char*> names) const {
        for (const char* name : names) {
            if (auto value = get(name)) {
                return *value;
            }
        }
        return {};
    }
    bool any_true(std::initializer_list<const char*> names) const {
        return std::any_of(names.begin(), names.end(), [&](const char* name) {
            return target::is_true(get(name).value_or(""));
        });
    }
    // Expands a leading ~ to the home folder, as huggingface_hub does.
    fs::path path(const std::string& text) const {
        if (text == "~" || text.starts_with("~/")) {
            return machine_.home() / text.substr(std::min<std::size_t>(2, text.size()));
        }
        return text;
    }

private:
    const target::Machine& machine_;
};

// An http or https URL of a host, without user, query and fragment. Checked without libcurl, which
// takes longer to load than an answer from the cache takes.
bool is_endpoint(std::string_view text) {
    const auto scheme = text.find("://");
    if (scheme == std::string_view::npos ||
        (text.substr(0, scheme) != "http" && text.substr(0, scheme) != "https")) {
        return false;
    }
    const auto rest = text.substr(scheme + 3);
    const auto host = rest.substr(0, rest.find('/'));
    return !host.empty() && host.front() != ':' &&
           std::all_of(rest.begin(), rest.end(), [](char c) {
               return c > ' ' && c < 0x7f && c != '@' && c != '?' && c != '#' && c != '\\';
           });
}

std::string endpoint_of(const Environment& environment) {
    const auto given = environment.get("HF_ENDPOINT");
    if (!given) {
        return Settings().endpoint;
    }
    std::string text = trimmed(*given);
    while (text.ends_with('/')) {
        text.pop_back();
    }
    if (!is_endpoint(text)) {
        const bool plain = text.find_first_of("@?#") == std::string::npos;
        throw Error(ErrorCode::malformed,
                    {.what = "the Hub's endpoint is not one",
                     .where = "HF_ENDPOINT",
                     .why = plain ? "\"" + base::printable(text) + "\" is not an http or https URL"
                                  : "a user name, query or fragment has no place in it",
                     .hint = "write it as https://huggingface.co"});
    }
    return text;
}

// A whole number; none if the variable is not set.
std::optional<std::int64_t> whole_number(const Environment& environment, const char* name,
                                         std::int64_t largest, const char* what) {
    const auto given = environment.get(name);
    if (!given) {
        return std::nullopt;
    }
    const std::string text = trimmed(*given);
    const auto value = base::parse_number<std::int64_t>(text);
    if (!value || *value < 0 || *value > largest) {
        throw Error(ErrorCode::malformed, {.what = what,
                                           .where = name,
                                           .why = "\"" + base::printable(text) +
                                                  "\" is none up to " + std::to_string(largest),
                                           .hint = ""});
    }
    return value;
}

std::chrono::seconds seconds_of(const Environment& environment, const char* name,
                                std::chrono::seconds fallback) {
    const std::int64_t value =
        whole_number(environment, name, 86'400, "a time-out is a whole number of seconds")
            .value_or(0);
    return value == 0 ? fallback : std::chrono::seconds(value);
}

// Wipes the text; messages must not contain any of it.
Secret checked_token(std::string text, const std::string& where) {
    const std::string_view view = text;
    const auto first = view.find_first_not_of(white_space);
    const auto token = first == std::string_view::npos
                           ? std::string_view()
                           : view.substr(first, view.find_last_not_of(white_space) - first + 1);
    const bool sane =
        std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; });
    const bool fits = token.size() <= longest_token;
    Secret secret = sane && fits ? Secret(token) : Secret();
    wipe(text.data(), text.size());
    if (!sane || !fits) {
        throw Error(ErrorCode::malformed,
                    {.what = "the token for the Hub is not one",
                     .where = where,
                     .why = fits ? "it holds blanks, control characters or letters beyond ASCII"
                                 : "it is longer than 4096 characters",
                     .hint = "write the token and nothing else there, or unset it"});
    }
    return secret;
}

fs::path token_file(const Environment& environment) {
    if (const auto given = environment.get("HF_TOKEN_PATH")) {
        return environment.path(*given);
    }
    if (const auto home = environment.get("HF_HOME")) {
        return environment.path(*home) / "token";
    }
    const auto cache = environment.get("XDG_CACHE_HOME");
    return environment.path(cache.value_or("~/.cache")) / "huggingface" / "token";
}

Secret token_of(const Environment& environment) {
    if (environment.any_true({"HF_HUB_DISABLE_IMPLICIT_TOKEN"})) {
        return Secret();
    }
    for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
        if (auto value = environment.get(name)) {
            if (Secret token = checked_token(std::move(*value), name); !token.empty()) {
                return token;
            }
        }
    }
    const fs::path file = token_file(environment);
    std::error_code error;
    if (!fs::exists(file, error)) {
        return Secret();
    }
    return checked_token(base::read_file(file, "token for the Hub", 2 * longest_token),
                         base::display_path(file));
}

std::string checked_agent(std::string_view text, const char* where) {
    const bool sane = text.size() <= 1024 && std::all_of(text.begin(), text.end(), [](char c) {
                          return c >= ' ' && c < 0x7f;
                      });
    if (!sane) {
        throw Error(ErrorCode::malformed,
                    {.what = "the user agent cannot be sent",
                     .where = where,
                     .why = "it holds control characters or letters beyond ASCII, or is too long",
                     .hint = "write it as name/version; name/version"});
    }
    return std::string(text);
}

// "twinkle/0.1.0; my-server/2.1; platform/x86_64-linux; glibc/2.36; file_type/kernel": entries in
// the format of huggingface_hub and `kernels`, each once.
std::string user_agent_of(const target::Machine& machine, const Environment& environment,
                          std::string_view program_agent) {
    std::vector<std::string> entries{"twinkle/" TWINKLE_VERSION};
    const auto add = [&](std::string_view text) {
        const std::string entry = trimmed(text);
        if (!entry.empty() && std::find(entries.begin(), entries.end(), entry) == entries.end()) {
            entries.push_back(entry);
        }
    };
    for (const std::string& entry : base::split(checked_agent(program_agent, "user_agent"), ';')) {
        add(entry);
    }
    add("platform/" + machine.arch() + "-" + machine.os());
    if (const auto glibc = machine.glibc()) {
        add("glibc/" + glibc->text());
    }
    add("file_type/kernel");
    if (const auto origin = environment.get("HF_HUB_USER_AGENT_ORIGIN")) {
        add("origin/" + checked_agent(trimmed(*origin), "HF_HUB_USER_AGENT_ORIGIN"));
    }
    return base::join(entries, "; ");
}

void read_authorities(const Environment& environment,
                      [[maybe_unused]] const target::Machine& machine, Settings& settings) {
    for (const char* name : {"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"}) {
        const auto given = environment.get(name);
        if (!given) {
            continue;
        }
        std::error_code error;
        const fs::path path = environment.path(*given);
        if (!fs::exists(path, error)) {
            throw Error(ErrorCode::malformed,
                        {.what = "the file of trusted certificates is not there",
                         .where = name,
                         .why = base::display_path(path) + " does not exist",
                         .hint = "correct or unset the variable"});
        }
        (fs::is_directory(path, error) ? settings.ca_folder : settings.ca_file) = path;
        break;
    }
    if (const auto given = environment.get("SSL_CERT_DIR"); given && settings.ca_folder.empty()) {
        settings.ca_folder = environment.path(*given);
    }
#ifdef TWINKLE_CURL_IS_LINKED
    if (settings.ca_file.empty() && settings.ca_folder.empty()) {
        settings.ca_file = find_authorities("/", machine.executable().parent_path().parent_path());
    }
#endif
}

// The rules of curl: http_proxy in lower case only (HTTP_PROXY may be a header of a CGI request).
Proxies proxies_of(const Environment& environment) {
    return {.http = environment.first({"http_proxy", "all_proxy", "ALL_PROXY"}),
            .https = environment.first({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}),
            .none = environment.first({"no_proxy", "NO_PROXY"})};
}

}  // namespace

Settings settings_from(const target::Machine& machine, std::string_view program_agent) {
    const Environment environment(machine);
    Settings settings;
    settings.endpoint = endpoint_of(environment);
    settings.token = token_of(environment);
    settings.offline =
        target::is_true(environment.first({"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}));
    settings.telemetry =
        !environment.any_true({"HF_HUB_DISABLE_TELEMETRY", "DISABLE_TELEMETRY", "DO_NOT_TRACK"});
    if (settings.telemetry) {
        settings.user_agent = user_agent_of(machine, environment, program_agent);
    }
    settings.etag_timeout = seconds_of(environment, "HF_HUB_ETAG_TIMEOUT", settings.etag_timeout);
    settings.download_timeout =
        seconds_of(environment, "HF_HUB_DOWNLOAD_TIMEOUT", settings.download_timeout);
    // Patience with silence implies patience with slowness.
    settings.low_speed_time =
        seconds_of(environment, "TWINKLE_LOW_SPEED_TIME",
                   std::max({settings.low_speed_time, 3 * settings.download_timeout,
                             3 * settings.etag_timeout}));
    settings.low_speed_limit = static_cast<std::uint64_t>(
        whole_number(environment, "TWINKLE_LOW_SPEED_LIMIT", 1 << 30,
                     "the least rate is a whole number of bytes a second")
            .value_or(static_cast<std::int64_t>(settings.low_speed_limit)));
    settings.token_over_http = environment.any_true({"TWINKLE_TOKEN_OVER_HTTP"});
    read_authorities(environment, machine, settings);
    settings.proxies = proxies_of(environment);
    return settings;
}

}  // namespace twinkle::hub
