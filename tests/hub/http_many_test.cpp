// Many transfers at once: order, bounds, pauses, interrupts, callbacks that throw.

#include <set>

#include "../base/throws.h"
#include "catch.h"
#include "http_client.h"
#include "hub/http.h"

using namespace twinkle;
using namespace twinkle::hub;
using namespace std::chrono_literals;
using test::answer;
using test::Answer;
using test::Client;
using test::error_of;
using test::LoopbackServer;
using test::Received;
using test::script;

namespace {

Transfer to(const std::string& url) {
    Transfer transfer;
    transfer.request.url = url;
    return transfer;
}

Answer stalling() {
    return {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", .stall = true};
}

}  // namespace

TEST_CASE("hundreds of transfers share few connections") {
    std::atomic<int> active{0}, most{0};
    LoopbackServer server([&](const Received& received) {
        const int now = ++active;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        --active;
        return answer(received.target.ends_with("7") ? 404 : 200, received.target);
    });
    Client client(server.origin());
    std::map<std::string, std::string> bodies;
    int refused = 0;
    for (int i = 0; i < 300; ++i) {
        const std::string path = "/" + std::to_string(i);
        Transfer transfer = to(server.origin() + path);
        transfer.on_data = [&bodies, path](std::string_view bytes) {
            bodies[path] += bytes;
            return Flow::more;
        };
        transfer.on_done = [&refused, path](const Outcome& outcome) {
            if (outcome.kind == Outcome::Kind::refused) {
                ++refused;
                CHECK(outcome.head.status == 404);
                CHECK(outcome.body == path);
            }
        };
        client.http.start(std::move(transfer));
    }
    client.http.run();
    CHECK(refused == 30);
    CHECK(bodies.size() == 270);
    CHECK(std::all_of(bodies.begin(), bodies.end(),
                      [](const auto& entry) { return entry.first == entry.second; }));
    CHECK(server.connections() <= 16);
    CHECK(client.http.requests() == 300);
}

TEST_CASE("an urgent transfer goes first; the end of one may start another") {
    // Answers nothing before all connections have sent a request: their first requests are then
    // those that were started first, however threads are scheduled.
    std::atomic<int> asked{0};
    LoopbackServer server([&](const Received&) {
        ++asked;
        for (int i = 0; i < 2000 && asked < 16; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return answer(200, "");
    });
    Client client(server.origin());
    std::vector<std::string> order;
    std::function<void(const std::string&, bool)> start = [&](const std::string& name,
                                                              bool urgent) {
        Transfer transfer = to(server.origin() + "/" + name);
        transfer.urgent = urgent;
        transfer.on_done = [&, name](const Outcome&) {
            order.push_back(name);
            if (name == "first") {
                start("next", false);
            }
        };
        client.http.start(std::move(transfer));
    };
    for (int i = 0; i < 40; ++i) {
        start("other", false);
    }
    start("first", true);
    client.http.run();
    CHECK(order.size() == 42);
    CHECK(server.requests().at(0).target != "/next");
    const auto requests = server.requests();
    const auto first = std::find_if(requests.begin(), requests.end(),
                                    [](const auto& r) { return r.target == "/first"; });
    CHECK(first - requests.begin() < 16);
}

TEST_CASE("one that waits for its turn does not hold up the others") {
    std::atomic<bool> refused{false};
    LoopbackServer server([&](const Received& received) {
        return received.target == "/busy" && !refused.exchange(true) ? answer(503, "")
                                                                     : answer(200, "");
    });
    Client client(server.origin());
    std::vector<std::string> order;
    for (const char* path : {"/busy", "/a", "/b", "/c"}) {
        Transfer transfer = to(server.origin() + path);
        transfer.on_done = [&order, path](const Outcome& outcome) {
            CHECK(outcome.kind == Outcome::Kind::done);
            order.emplace_back(path);
        };
        client.http.start(std::move(transfer));
    }
    client.http.run();
    REQUIRE(order.size() == 4);
    CHECK(order.back() == "/busy");
}

TEST_CASE("a transfer pauses until another thread has room for more") {
    const std::string body(3'000'000, 'x');
    LoopbackServer server(script({answer(200, body)}));
    Client client(server.origin());
    std::size_t received = 0, pauses = 0;
    TransferId id = 0;
    std::vector<std::thread> threads;
    Transfer transfer = to(server.origin());
    bool room = true;
    transfer.on_data = [&](std::string_view bytes) {
        if (!room) {
            ++pauses;
            threads.emplace_back([&] {
                client.http.post([&] {
                    room = true;
                    client.http.resume(id);
                });
            });
            return Flow::pause;
        }
        received += bytes.size();
        room = received % 3 != 0;
        return Flow::more;
    };
    std::optional<Outcome> outcome;
    transfer.on_done = [&](const Outcome& ended) { outcome = ended; };
    id = client.http.start(std::move(transfer));
    client.http.run();
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(received == body.size());
    CHECK(pauses > 0);
    REQUIRE(outcome);
    CHECK(outcome->kind == Outcome::Kind::done);
    CHECK(outcome->received == body.size());
}

TEST_CASE("a callback that takes long is not the silence of others") {
    LoopbackServer server([](const Received& received) {
        Answer late = answer(200, "0123456789");
        late.before = std::chrono::milliseconds(received.target == "/slow" ? 100 : 0);
        return late;
    });
    Client client(server.origin(), [](Settings& settings) { settings.etag_timeout = 1s; });
    for (const char* path : {"/first", "/slow", "/other"}) {
        Transfer transfer = to(server.origin() + path);
        transfer.on_data = [path](std::string_view) {
            if (path == std::string_view("/first")) {
                std::this_thread::sleep_for(1300ms);
            }
            return Flow::more;
        };
        transfer.on_done = [](const Outcome& outcome) {
            CHECK(outcome.kind == Outcome::Kind::done);
            CHECK(outcome.attempts == 1);
        };
        client.http.start(std::move(transfer));
    }
    client.http.run();
    CHECK(server.requests().size() == 3);
}

TEST_CASE("transfers end where a callback or cancel() says so") {
    LoopbackServer server([](const Received& received) {
        return received.target == "/stall" ? stalling() : answer(200, "0123456789");
    });
    Client client(server.origin());
    std::map<std::string, Outcome::Kind> kinds;
    const auto start = [&](const std::string& path, std::function<Flow()> head,
                           std::function<Flow()> data) {
        Transfer transfer = to(server.origin() + path);
        transfer.on_head = [head](const Head&) { return head(); };
        transfer.on_data = [data](std::string_view) { return data(); };
        transfer.on_done = [&kinds, path](const Outcome& outcome) { kinds[path] = outcome.kind; };
        return client.http.start(std::move(transfer));
    };
    const auto more = [] { return Flow::more; };
    const auto stop = [] { return Flow::stop; };
    start("/head", stop, more);
    start("/data", more, stop);
    TransferId stalled = 0;
    stalled = start("/stall", more, [&] {
        client.http.cancel(stalled);
        return Flow::more;
    });
    start("/whole", more, more);
    client.http.run();
    CHECK(kinds.at("/head") == Outcome::Kind::stopped);
    CHECK(kinds.at("/data") == Outcome::Kind::stopped);
    CHECK(kinds.at("/stall") == Outcome::Kind::stopped);
    CHECK(kinds.at("/whole") == Outcome::Kind::done);
}

TEST_CASE("an interrupt ends everything at once") {
    LoopbackServer server(script({stalling()}));
    Client client(server.origin());
    std::vector<Outcome::Kind> kinds;
    for (int i = 0; i < 20; ++i) {
        Transfer transfer = to(server.origin());
        transfer.on_data = [&](std::string_view) {
            client.stop = true;
            return Flow::more;
        };
        transfer.on_done = [&](const Outcome& outcome) { kinds.push_back(outcome.kind); };
        client.http.start(std::move(transfer));
    }
    client.http.run();
    CHECK(kinds == std::vector<Outcome::Kind>(20, Outcome::Kind::interrupted));
    const auto error = error_of([&] { client.get(server.origin()); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::interrupted);
    client.stop = false;
}

TEST_CASE("what a callback throws comes out of run(), and all else ends") {
    LoopbackServer server([](const Received& received) {
        return received.target == "/stall" ? stalling() : answer(200, "data");
    });
    Client client(server.origin());
    bool other_done = false;
    Transfer other = to(server.origin() + "/stall");
    other.on_done = [&](const Outcome&) { other_done = true; };
    const auto full = [] {
        throw Error(ErrorCode::failed,
                    {.what = "the disk is full", .where = "", .why = "", .hint = ""});
    };
    for (int where = 0; where < 3; ++where) {
        client.http.start(other);
        Transfer transfer = to(server.origin() + "/x");
        transfer.on_head = [&](const Head&) {
            if (where == 0) {
                full();
            }
            return Flow::more;
        };
        transfer.on_data = [&](std::string_view) {
            if (where == 1) {
                full();
            }
            return Flow::more;
        };
        transfer.on_done = [&](const Outcome&) { full(); };
        client.http.start(std::move(transfer));
        const auto error = error_of([&] { client.http.run(); });
        REQUIRE(error);
        CHECK(error->details().what == "the disk is full");
    }
    CHECK_FALSE(other_done);
    CHECK(client.get(server.origin() + "/x").body == "data");  // and it is still of use
}

TEST_CASE("a long refusal is not read to its end") {
    LoopbackServer server(script({answer(404, std::string(5'000'000, 'x')), answer(200, "well")}));
    Client client(server.origin());
    const Response response = client.get(server.origin());
    CHECK(response.status() == 404);
    CHECK(response.body.size() == 64u << 10);
    CHECK(client.get(server.origin()).body == "well");
}
