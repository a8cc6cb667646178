#pragma once
// HTTP against a server of the test, with a token and a fake clock.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "fake_clock.h"
#include "hub/http.h"
#include "loopback_server.h"

namespace twinkle::test {

inline const std::string token = "hf_the_token_of_a_test";

// A Hub at a server of the test, with a fake clock.
struct Client {
    FakeClock clock;
    std::vector<std::string> log;
    std::atomic<bool> stop{false};
    hub::Settings settings;
    hub::Http http;

    explicit Client(const std::string& endpoint, std::function<void(hub::Settings&)> change = {})
        : settings(settings_for(endpoint, change)),
          http(settings, {.clock = &clock, .stop = &stop, .log = [this](const std::string& line) {
                              log.push_back(line);
                          }}) {}

    static hub::Settings settings_for(const std::string& endpoint,
                                      const std::function<void(hub::Settings&)>& change) {
        hub::Settings settings;
        settings.endpoint = endpoint;
        settings.token = hub::Secret(token);
        settings.user_agent = "twinkle/test";
        settings.etag_timeout = settings.download_timeout = std::chrono::seconds(5);
        if (change) {
            change(settings);
        }
        return settings;
    }
    hub::Response get(const std::string& url) {
        hub::Request request;
        request.url = url;
        return http.send(request);
    }
};

// Answers of the first requests; the last one stays.
inline LoopbackServer::Handler script(std::vector<Answer> answers) {
    auto next = std::make_shared<std::atomic<std::size_t>>(0);
    return [answers = std::move(answers), next](const Received&) {
        return answers[std::min(next->fetch_add(1), answers.size() - 1)];
    };
}

inline std::string header_of(const Received& received, const std::string& name) {
    const auto found = received.headers.find(name);
    return found == received.headers.end() ? "" : found->second;
}

}  // namespace twinkle::test
