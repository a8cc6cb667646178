#include "hub/http.h"

#include <cstdlib>

#include "../base/throws.h"
#include "base/base64.h"
#include "catch.h"
#include "http_client.h"

using namespace twinkle;
using namespace twinkle::hub;
using namespace std::chrono_literals;
using test::answer;
using test::Answer;
using test::Client;
using test::error_of;
using test::header_of;
using test::LoopbackServer;
using test::Received;
using test::script;
using test::token;

TEST_CASE("an answer, over a connection that is kept") {
    LoopbackServer server(
        script({answer(200, "hello", {{"Set-Cookie", "a=b"}, {"X-Some", "Thing"}})}));
    Client client(server.origin());
    const Response first = client.get(server.origin() + "/a?b=c");
    CHECK(first.status() == 200);
    CHECK(first.body == "hello");
    CHECK(first.head.headers.get("x-some") == "Thing");
    CHECK(first.head.total_size() == 5u);
    CHECK_FALSE(first.head.reused);
    const Response second = client.get(server.origin() + "/b");
    CHECK(second.head.reused);
    CHECK(server.connections() == 1);
    CHECK(client.http.requests() == 2);

    const auto requests = server.requests();
    REQUIRE(requests.size() == 2);
    CHECK(requests[0].method == "GET");
    CHECK(requests[0].target == "/a?b=c");
    CHECK(header_of(requests[0], "authorization") == "Bearer " + token);
    CHECK(header_of(requests[0], "user-agent") == "twinkle/test");
    CHECK(header_of(requests[0], "accept-encoding") == "identity");
    CHECK(header_of(requests[1], "cookie").empty());
    REQUIRE(client.log.size() == 2);
    CHECK_THAT(client.log[0], ContainsSubstring("GET " + server.origin() + "/a 200 "));
    CHECK_THAT(client.log[0], !ContainsSubstring("b=c"));
}

TEST_CASE("without telemetry there is no user agent") {
    LoopbackServer server(script({answer(200, "")}));
    Client client(server.origin(), [](Settings& settings) { settings.user_agent.clear(); });
    client.get(server.origin());
    CHECK_FALSE(server.requests()[0].headers.contains("user-agent"));
}

TEST_CASE("a HEAD, and a range") {
    LoopbackServer server(
        script({answer(200, "", {{"X-Linked-Size", "7"}}),
                {.bytes = "HTTP/1.1 206 Partial\r\nContent-Range: bytes 3-5/10\r\n"
                          "Content-Length: 3\r\n\r\ndef"}}));
    Client client(server.origin());
    Request request{.method = "HEAD", .url = server.origin()};
    CHECK(client.http.send(request, 0).head.headers.get("X-Linked-Size") == "7");
    request = {.url = server.origin(), .range = ByteRange{3, 5}};
    const Response response = client.http.send(request);
    CHECK(response.body == "def");
    CHECK(response.head.total_size() == 10u);
    CHECK(server.requests()[0].method == "HEAD");
    CHECK(header_of(server.requests()[1], "range") == "bytes=3-5");
}

TEST_CASE("what may change is tried again") {
    LoopbackServer server(script({answer(503, "busy"),
                                  answer(429, "", {{"Retry-After", "7"}}),
                                  {.bytes = "HTTP/1.1 200 OK\r\nX: y", .close = true},
                                  answer(200, "well")}));
    Client client(server.origin());
    const Response response = client.get(server.origin());
    CHECK(response.body == "well");
    CHECK(response.attempts == 4);
    REQUIRE(client.clock.waits.size() == 3);
    CHECK(client.clock.waits[0] < 500ms);
    CHECK(client.clock.waits[1] > 7s);
    CHECK(client.clock.waits[2] >= 1s);
    CHECK_THAT(client.log[3], ContainsSubstring("attempt 4"));
}

TEST_CASE("but not for ever, and nothing that stays") {
    LoopbackServer server([](const Received& received) {
        return received.target == "/missing" ? answer(404, "no")
               : received.target == "/later" ? answer(429, "", {{"Retry-After", "86400"}})
                                             : answer(503, "busy");
    });
    Client client(server.origin());
    const Response busy = client.get(server.origin() + "/busy");
    CHECK(busy.status() == 503);
    CHECK(busy.body == "busy");
    CHECK(busy.attempts == 5);
    CHECK(client.get(server.origin() + "/missing").attempts == 1);
    CHECK(client.get(server.origin() + "/later").attempts == 1);
    CHECK(server.requests().size() == 7);
}

TEST_CASE("redirects at the same origin keep the token") {
    LoopbackServer server([](const Received& received) {
        return received.target == "/a"
                   ? answer(307, "x", {{"Location", "/b"}, {"X-Repo-Commit", "c"}})
               : received.target == "/b" ? answer(302, "", {{"Location", "c?d"}})
                                         : answer(200, received.target);
    });
    Client client(server.origin());
    const Response response = client.get(server.origin() + "/a");
    CHECK(response.body == "/c?d");
    CHECK(response.head.url == server.origin() + "/c?d");
    for (const Received& received : server.requests()) {
        CHECK(header_of(received, "authorization") == "Bearer " + token);
    }
}

TEST_CASE("another origin gets neither the token nor other headers, nor does the way back") {
    std::string back;
    LoopbackServer other([&](const Received& received) {
        return received.target == "/back" ? answer(302, "", {{"Location", back}})
                                          : answer(200, "file");
    });
    LoopbackServer hub([&](const Received& received) {
        return received.target == "/home"
                   ? answer(200, "home")
                   : answer(302, "",
                            {{"Location", other.origin() + received.target + "?Signature=x"},
                             {"X-Linked-Size", "4"}});
    });
    back = hub.origin() + "/home";
    Client client(hub.origin());
    Request request{
        .url = hub.origin() + "/file", .headers = {{"X-Own", "1"}}, .range = ByteRange{0, {}}};
    const Response response = client.http.send(request);
    CHECK(response.body == "file");
    CHECK(response.head.hub_headers.get("x-linked-size") == "4");
    CHECK_FALSE(response.head.headers.get("x-linked-size"));
    CHECK(header_of(hub.requests()[0], "authorization") == "Bearer " + token);
    CHECK(header_of(hub.requests()[0], "x-own") == "1");
    const Received asked = other.requests().at(0);
    CHECK_FALSE(asked.headers.contains("authorization"));
    CHECK_FALSE(asked.headers.contains("x-own"));
    CHECK_FALSE(asked.headers.contains("referer"));
    CHECK(header_of(asked, "range") == "bytes=0-");

    // A server that is not the Hub redirects the client to the Hub.
    const auto before = hub.requests().size();
    CHECK(client.get(other.origin() + "/back").body == "home");
    CHECK_FALSE(hub.requests().at(before).headers.contains("authorization"));

    request.redirects = Redirects::same_origin;
    const Response kept = client.http.send(request);
    CHECK(kept.status() == 302);
    CHECK(other.requests().size() == 2);
    for (const std::string& line : client.log) {
        CHECK_THAT(line, !ContainsSubstring("Signature"));
    }
}

TEST_CASE("redirects that lead nowhere") {
    std::string location;
    LoopbackServer server([&](const Received&) {
        return location.empty() ? answer(302, "") : answer(302, "", {{"Location", location}});
    });
    Client client(server.origin());
    for (const char* text : {"", "/again", "file:///etc/passwd", "ftp://127.0.0.1/x", "http://",
                             "https://a b/", "//"}) {
        location = text;
        const auto error = error_of([&] { client.get(server.origin() + "/x"); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::unreachable);
        CHECK_THAT(error->what(), ContainsSubstring("redirects"));
    }
}

TEST_CASE("a right that has ended at the other host is asked for again") {
    LoopbackServer files(script({answer(403, "AccessDenied"), answer(200, "file")}));
    LoopbackServer hub([&](const Received&) {
        return answer(302, "", {{"Location", files.origin() + "/x?Signature=1"}});
    });
    Client client(hub.origin());
    CHECK(client.get(hub.origin() + "/x").body == "file");
    CHECK(hub.requests().size() == 2);
}

TEST_CASE("a body that is cut counts as none") {
    const std::string whole = answer(200, std::string(1000, 'x')).bytes;
    const Answer cut{.bytes = whole.substr(0, whole.size() - 400), .close = true};
    const Answer cut_chunks{
        .bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        .close = true};
    {
        LoopbackServer server(script({cut, cut_chunks, {.bytes = whole}}));
        Client client(server.origin());
        CHECK(client.get(server.origin()).body == std::string(1000, 'x'));
    }
    LoopbackServer server(script({cut}));
    Client client(server.origin());
    const auto error = error_of([&] { client.get(server.origin()); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::unreachable);
    CHECK_THAT(error->what(), ContainsSubstring("before its announced length"));
    CHECK_THAT(error->what(), ContainsSubstring("tried 5 times"));
}

TEST_CASE("a transfer continues where it was cut") {
    const std::string whole = "0123456789";
    LoopbackServer server([&](const Received& received) -> Answer {
        const std::string range = header_of(received, "range");
        if (range.empty()) {
            return {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123", .close = true};
        }
        const auto first = std::stoul(range.substr(6));
        return {.bytes = "HTTP/1.1 206 Partial\r\nContent-Length: " +
                         std::to_string(whole.size() - first) + "\r\n\r\n" + whole.substr(first, 3),
                .close = first < 7};
    });
    Client client(server.origin());
    std::string body;
    std::vector<int> statuses;
    Transfer transfer;
    transfer.request.url = server.origin();
    transfer.request.download = true;
    transfer.on_head = [&](const Head& head) {
        statuses.push_back(head.status);
        return Flow::more;
    };
    transfer.on_data = [&](std::string_view bytes) {
        body += bytes;
        return Flow::more;
    };
    transfer.on_retry = [&](Request& request) {
        request.range = ByteRange{body.size(), {}};
        return true;
    };
    std::optional<Outcome> outcome;
    transfer.on_done = [&](const Outcome& ended) { outcome = ended; };
    client.http.start(transfer);
    client.http.run();
    REQUIRE(outcome);
    CHECK(outcome->kind == Outcome::Kind::done);
    CHECK(outcome->received == 10);
    CHECK(body == whole);
    CHECK(statuses == std::vector<int>{200, 206, 206});
    // Without on_retry, received bytes are not requested again.
    transfer.on_retry = nullptr;
    client.http.start(transfer);
    client.http.run();
    CHECK(outcome->kind == Outcome::Kind::failed);
    CHECK(outcome->failure == Failure::broken);
    CHECK(outcome->attempts == 1);
}

TEST_CASE("what is no HTTP, or too much of it") {
    const std::string field(90'000, 'x');
    std::string many = "HTTP/1.1 200 OK\r\n";
    for (int i = 0; i < 5000; ++i) {
        many += "X: y\r\n";
    }
    const std::vector<Answer> answers{
        {.bytes = "SSH-2.0-OpenSSH\r\n\r\n", .close = true},
        {.bytes = "HTTP/1.1 200 OK\r\nX: " + field + field + "\r\n\r\n", .close = true},
        {.bytes =
             "HTTP/1.1 200 OK\r\nX: " + field + "\r\nY: " + field + "\r\nZ: " + field + "\r\n\r\n",
         .close = true},
        {.bytes = many + "\r\n", .close = true},
        {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", .close = true},
        {.bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", .close = true},
    };
    for (const Answer& bad : answers) {
        LoopbackServer server(script({bad}));
        Client client(server.origin());
        const auto error = error_of([&] { client.get(server.origin()); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::unreachable);
    }
}

TEST_CASE("an answer that is larger than it may be ends early") {
    LoopbackServer server([&](const Received& received) -> Answer {
        if (received.target == "/announced") {
            return answer(200, std::string(2000, 'x'));
        }
        return {.bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" +
                         std::string(2000, 'x') + "\r\n0\r\n\r\n"};
    });
    Client client(server.origin());
    for (const char* path : {"/announced", "/chunked"}) {
        Request request{.url = server.origin() + path};
        CHECK(client.http.send(request, 2000).body.size() == 2000);
        const auto error = error_of([&] { client.http.send(request, 1999); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::unreachable);
        CHECK_THAT(error->what(), ContainsSubstring("larger"));
    }
}

TEST_CASE("compressed answers count by what they unfold to") {
    // 100,000 zeros in gzip.
    const std::string zeros =
        "H4sIAAAAAAACA+3BMQEAAADCoPVPbQ0PoAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAAAAAAAAAAAAAAAAAAAIBXA32VEdSghgEA";
    const std::string bomb = base::from_base64(zeros).value();
    LoopbackServer server(script({answer(200, bomb, {{"Content-Encoding", "gzip"}})}));
    Client client(server.origin());
    Request request{.url = server.origin(), .compressed = true};
    CHECK(client.http.send(request, 100'000).body == std::string(100'000, '\0'));
    CHECK(error_of([&] { client.http.send(request, 99'999); }));
    CHECK(header_of(server.requests()[0], "accept-encoding") == "gzip, deflate");
    request.compressed = false;
    CHECK(client.http.send(request).body == bomb);
}

TEST_CASE("hosts that cannot be reached") {
    std::string gone;
    {
        const LoopbackServer server(script({answer(200, "")}));
        gone = server.origin();
    }
    Client client(gone);
    const auto refused = error_of([&] { client.get(gone + "/x?Signature=s"); });
    REQUIRE(refused);
    CHECK(refused->code() == ErrorCode::unreachable);
    CHECK(refused->details().where == gone + "/x");
    CHECK_THAT(refused->details().why, ContainsSubstring("refuses the connection"));
    CHECK_THAT(refused->details().hint, ContainsSubstring("--offline"));
    CHECK(client.http.requests() == 2);  // it was never there: no more patience than this

    Client nowhere("http://hub.invalid",
                   [](Settings& settings) { settings.token_over_http = true; });
    const auto unknown = error_of([&] { nowhere.get("http://hub.invalid/x"); });
    REQUIRE(unknown);
    CHECK_THAT(unknown->what(), ContainsSubstring("http://hub.invalid/x"));
    CHECK_THAT(unknown->details().hint, ContainsSubstring("HF_ENDPOINT"));
}

TEST_CASE("patience has an end") {
    LoopbackServer server([](const Received& received) -> Answer {
        return {.bytes = received.target == "/head"
                             ? ""
                             : "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
                .stall = true};
    });
    Client client(server.origin(), [](Settings& settings) { settings.etag_timeout = 1s; });
    Transfer transfer;
    std::vector<Outcome> outcomes;
    transfer.on_retry = [](Request&) { return false; };
    transfer.on_done = [&](const Outcome& outcome) { outcomes.push_back(outcome); };
    for (const char* path : {"/head", "/body"}) {
        transfer.request.url = server.origin() + path;
        client.http.start(transfer);
    }
    client.http.run();
    REQUIRE(outcomes.size() == 2);
    for (const Outcome& outcome : outcomes) {
        CHECK(outcome.kind == Outcome::Kind::failed);
        CHECK(outcome.failure == Failure::timeout);
    }
}

TEST_CASE("an answer that comes too slowly ends, one that comes at all rates may be allowed") {
    // A header or a byte of the body every 0.2 seconds.
    LoopbackServer server([](const Received& received) -> Answer {
        if (received.target == "/head") {
            return {.bytes = "HTTP/1.1 200 OK\r\n",
                    .drip = std::vector<std::string>(40, "X-More: of it\r\n")};
        }
        return {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n",
                .drip = std::vector<std::string>(15, "x")};
    });
    for (const std::uint64_t limit : {10, 0}) {
        Client client(server.origin(), [&](Settings& settings) {
            settings.low_speed_time = 1s;
            settings.low_speed_limit = limit;
            settings.etag_timeout = 1s;
        });
        Transfer transfer;
        transfer.on_retry = [](Request&) { return false; };
        std::map<std::string, Outcome> outcomes;
        for (const std::string path : {"/head", "/body"}) {
            transfer.request.url = server.origin() + path;
            transfer.on_done = [&, path](const Outcome& outcome) { outcomes[path] = outcome; };
            client.http.start(transfer);
        }
        client.http.run();
        CHECK(outcomes["/head"].failure == Failure::slow);
        CHECK_THAT(outcomes["/head"].reason, ContainsSubstring("headers within 1 s"));
        CHECK(outcomes["/body"].failure == (limit == 0 ? Failure::timeout : Failure::slow));
        if (limit != 0) {
            CHECK_THAT(outcomes["/body"].reason, ContainsSubstring("less than 10 a second"));
        }
    }
}

TEST_CASE("answers before the answer are counted") {
    for (const int count : {3, 17}) {
        LoopbackServer server([&](const Received&) -> Answer {
            std::string bytes;
            for (int i = 0; i < count; ++i) {
                bytes += "HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n";
            }
            return {.bytes = bytes + answer(200, "done").bytes};
        });
        Client client(server.origin());
        const auto error = error_of([&] {
            const Response response = client.get(server.origin() + "/x");
            CHECK(response.body == "done");
            CHECK_FALSE(response.head.headers.get("link"));
        });
        CHECK(error.has_value() == (count > 16));
        CHECK(server.requests().size() == 1);
    }
}

TEST_CASE("proxies are those of the settings, and no others") {
    LoopbackServer proxy(script({answer(200, "by proxy")}));
    LoopbackServer server(script({answer(200, "direct")}));
    ::setenv("http_proxy", "http://127.0.0.1:9", 1);
    CHECK(Client(server.origin()).get(server.origin()).body == "direct");
    ::unsetenv("http_proxy");
    const auto with_proxy = [&](std::string none) {
        return [&proxy, none](Settings& settings) {
            settings.proxies = {.http = proxy.origin(), .https = "", .none = none};
        };
    };
    CHECK(Client(server.origin(), with_proxy("")).get(server.origin() + "/x").body == "by proxy");
    CHECK(proxy.requests().at(0).target == server.origin() + "/x");
    CHECK(Client(server.origin(), with_proxy("127.0.0.1")).get(server.origin()).body == "direct");
}
