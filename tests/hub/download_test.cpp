#include "hub/download.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "../base/throws.h"
#include "cache/partial_file.h"
#include "catch.h"
#include "file_hub.h"

using namespace twinkle;
using namespace twinkle::test;
namespace fs = std::filesystem;

namespace {

std::string range_of(const Received& received) {
    const auto found = received.headers.find("range");
    return found == received.headers.end() ? "" : found->second;
}

void set_header(FileAnswer& reply, const std::string& name, const std::string& value) {
    for (auto& header : reply.headers) {
        if (header.first == name) {
            header.second = value;
            return;
        }
    }
    reply.headers.emplace_back(name, value);
}

}  // namespace

TEST_CASE("a file is one request, and none when it is there", "[download]") {
    FileHub hub;
    const TempFolder folder;
    Downloader client(hub, folder / "hub");
    for (int i = 0; i < 100; ++i) {
        hub.add("build/x/" + std::to_string(i), bytes_of(2000, i), i % 2 == 0);
    }
    const auto result = client.get(hub.item);
    CHECK(result.files_downloaded == 100);
    CHECK(result.bytes_downloaded == 200000);
    CHECK(hub.requests() == 100);
    CHECK(client.shown("build/x/7") == bytes_of(2000, 7));
    CHECK(client.entries() == 100);

    const auto again = client.get(hub.item);
    CHECK(again.files_present == 100);
    CHECK(again.files_downloaded == 0);
    CHECK(hub.requests() == 100);
    // Only the links are missing.
    fs::remove_all(client.cache.snapshot(file_repo, file_commit));
    CHECK(client.get(hub.item).files_downloaded == 0);
    CHECK(client.shown("build/x/8") == bytes_of(2000, 8));
    CHECK(hub.requests() == 100);
}

TEST_CASE("equal contents are fetched once", "[download]") {
    FileHub hub;
    const TempFolder folder;
    Downloader client(hub, folder / "hub");
    hub.add("a", "same");
    hub.add("b/c", "same");
    hub.add("empty", "");
    hub::DownloadItem other = hub.item;
    other.commit = std::string(40, 'b');
    const auto result = client.get(std::vector{hub.item, other});
    CHECK(result.files_downloaded == 2);
    CHECK(hub.requests() == 1);  // nothing has to be asked for
    CHECK(client.shown("b/c") == "same");
    CHECK(client.shown("a", other.commit) == "same");
    CHECK(fs::file_size(client.cache.file(file_repo, other.commit, "empty")) == 0);

    hub.item.files.push_back(listed("a", "other", false));
    const auto error = error_of([&] { client.get(hub.item); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::malformed);
}

TEST_CASE("offline, what is there is there", "[download]") {
    FileHub hub;
    const TempFolder folder;
    hub.add("a", "text");
    Downloader offline(hub, folder / "hub", {}, true);
    const auto error = error_of([&] { offline.get(hub.item); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::unreachable);
    Downloader(hub, folder / "hub").get(hub.item);
    CHECK(offline.get(hub.item).files_present == 1);
    CHECK(hub.requests() == 1);
}

TEST_CASE("a cut transfer goes on where it was cut", "[download]") {
    std::mt19937 random(7);
    std::atomic<int> cuts{12};
    FileHub hub([&](const Received&, FileAnswer& reply) {
        if (cuts-- > 0) {
            reply.cut = random() % reply.body.size();
        }
    });
    const TempFolder folder;
    Downloader client(hub, folder / "hub");
    for (const std::size_t size : {3000u, 700'000u, 3'000'000u}) {
        hub.add("f" + std::to_string(size), bytes_of(size), size > 5000);
        cuts = 4;
        client.get(hub.item);
        CHECK(client.shown("f" + std::to_string(size)) == bytes_of(size));
    }
    CHECK(hub.bytes_served() == 3000 + 700'000 + 3'000'000);
    CHECK(client.entries() == 3);
}

TEST_CASE("another process goes on where one was killed", "[download]") {
    FileHub hub;
    const TempFolder folder;
    for (const std::size_t size : {600'000u, 3'000'000u}) {
        const std::string name = "f" + std::to_string(size);
        hub.add(name, bytes_of(size), true);
        Downloader first(hub, folder / "hub");
        first.give_up_at = size / 2;
        CHECK(error_of([&] { first.get(hub.item); }));
        CHECK_FALSE(first.shows(name));
        Downloader second(hub, folder / "hub");
        const auto result = second.get(hub.item);
        CHECK(result.bytes_resumed >= size / 2);
        CHECK(result.bytes_resumed + result.bytes_downloaded == size);
        CHECK(second.shown(name) == bytes_of(size));
        CHECK_FALSE(range_of(hub.server.requests().back()).empty());
    }
}

TEST_CASE("all of it is there but its name", "[download]") {
    FileHub hub;
    const TempFolder folder;
    Downloader client(hub, folder / "hub");
    for (const std::size_t size : {1000u, 2'000'000u}) {
        const auto& file = hub.add("f" + std::to_string(size), bytes_of(size));
        folder.write("hub/kernels--org--name/blobs/" + file.etag() + ".0123abcd.incomplete",
                     bytes_of(size));
        CHECK(client.get(hub.item).bytes_resumed == size);
        CHECK(client.shown("f" + std::to_string(size)) == bytes_of(size));
    }
    CHECK(hub.requests() == 0);
    CHECK(client.entries() == 2);
}

TEST_CASE("a server that ignores ranges sends everything again", "[download]") {
    std::string whole;
    FileHub hub([&](const Received& received, FileAnswer& reply) {
        if (!range_of(received).empty()) {
            reply.status = 200;
            reply.body = whole;
            std::erase_if(reply.headers,
                          [](auto& header) { return header.first == "Content-Range"; });
        }
    });
    const TempFolder folder;
    for (const std::size_t size : {300'000u, 2'000'000u, 66u << 20}) {
        whole = bytes_of(size);
        const std::string name = "f" + std::to_string(size);
        const auto& file = hub.add(name, whole, true);
        folder.write("hub/kernels--org--name/blobs/" + file.etag() + ".0123abcd.incomplete",
                     whole.substr(0, size / 3));
        Downloader client(hub, folder / "hub");
        const auto result = client.get(hub.item);
        CHECK(result.bytes_resumed == 0);
        CHECK(result.bytes_downloaded == size);
        CHECK((client.shown(name) == whole));
    }
    CHECK(hub.requests() == 3);
}

TEST_CASE("what was resumed may be wrong", "[download]") {
    FileHub hub;
    const TempFolder folder;
    for (const std::size_t size : {1000u, 2'000'000u}) {
        const auto& file = hub.add("f" + std::to_string(size), bytes_of(size));
        folder.write("hub/kernels--org--name/blobs/" + file.etag() + ".0123abcd.incomplete",
                     std::string(500, 'x'));
        Downloader client(hub, folder / "hub");
        client.get(hub.item);
        CHECK(client.shown("f" + std::to_string(size)) == bytes_of(size));
    }
}

TEST_CASE("wrong bytes are refused, after a second look", "[download]") {
    std::atomic<int> wrong{1};
    FileHub hub([&](const Received&, FileAnswer& reply) {
        if (wrong-- > 0) {
            reply.body[reply.body.size() / 2] ^= 1;
        }
    });
    const TempFolder folder;
    for (const std::size_t size : {1000u, 2'000'000u}) {
        const std::string name = "f" + std::to_string(size);
        const auto& file = hub.add(name, bytes_of(size), true);
        Downloader client(hub, folder / "hub");
        wrong = 2;
        const auto error = error_of([&] { client.get(hub.item); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::verification);
        CHECK(error->details().where == "org/name@" + file_commit + "/" + name);
        CHECK_THAT(error->details().why, ContainsSubstring("expected SHA-256 " + file.etag()));
        CHECK_FALSE(client.shows(name));
        CHECK(cache::list_partial_files(client.cache, file_repo).empty());
        wrong = 1;
        client.get(hub.item);
        CHECK(client.shown(name) == bytes_of(size));
    }
}

TEST_CASE("an answer about something else is refused", "[download]") {
    std::function<void(FileAnswer&)> lie;
    FileHub hub([&](const Received&, FileAnswer& reply) { lie(reply); });
    const TempFolder folder;
    hub.add("a", bytes_of(1000));
    const auto refused = [&](std::function<void(FileAnswer&)> what, const std::string& got) {
        lie = std::move(what);
        Downloader client(hub, folder / "hub");
        const auto error = error_of([&] { client.get(hub.item); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::verification);
        CHECK_THAT(error->details().why, ContainsSubstring("got " + got));
        CHECK_FALSE(client.shows("a"));
    };
    const std::string other(40, 'c');
    refused([&](FileAnswer& reply) { set_header(reply, "ETag", "W/\"" + other + "\""); },
            "the ETag " + other);
    refused([&](FileAnswer& reply) { set_header(reply, "X-Linked-Etag", other); },
            "the ETag " + other);
    refused([&](FileAnswer& reply) { set_header(reply, "X-Repo-Commit", other); },
            "the commit " + other);
    refused([](FileAnswer& reply) { reply.body.resize(999); }, "999 bytes");
    refused([](FileAnswer& reply) { reply.body += "x"; }, "1001 bytes");
    refused([](FileAnswer& reply) { reply.status = 206; }, "no Content-Range");
    lie = [](FileAnswer& reply) { set_header(reply, "ETag", "\"of-a-mirror\""); };
    Downloader(hub, folder / "hub").get(hub.item);
}

TEST_CASE("a range that was not asked for is not taken", "[download]") {
    FileHub hub([](const Received& received, FileAnswer& reply) {
        if (!range_of(received).empty()) {
            set_header(reply, "Content-Range", "bytes 0-999/1000");
        }
    });
    const TempFolder folder;
    const auto& file = hub.add("a", bytes_of(1000));
    folder.write("hub/kernels--org--name/blobs/" + file.etag() + ".0123abcd.incomplete",
                 bytes_of(1000).substr(0, 500));
    Downloader client(hub, folder / "hub");
    client.get(hub.item);
    CHECK(client.shown("a") == bytes_of(1000));
    CHECK(hub.requests() == 2);
}

TEST_CASE("what the Hub does not have is said", "[download]") {
    FileHub hub;
    const TempFolder folder;
    hub.item.files.push_back(listed("a", "text", false));
    Downloader client(hub, folder / "hub");
    const auto error = error_of([&] { client.get(hub.item); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::not_found);
    CHECK(client.entries() == 0);
}

TEST_CASE("a large file arrives in ranges, and is resumed in all of them", "[download]") {
    std::atomic<bool> slow{false};
    FileHub hub([&](const Received&, FileAnswer& reply) {
        if (slow) {
            reply.cut = reply.body.size() / 3;
        }
    });
    const TempFolder folder;
    const std::size_t size = (70u << 20) + 12345;
    const std::string bytes = bytes_of(size);
    hub.add("large", bytes, true);
    {
        Downloader client(hub, folder / "hub");
        client.stop_at = 40u << 20;
        const auto error = error_of([&] { client.get(hub.item); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::interrupted);
        CHECK_FALSE(client.shows("large"));
    }
    const auto before = hub.requests();
    Downloader client(hub, folder / "hub");
    const auto result = client.get(hub.item);
    CHECK(result.bytes_resumed > 30u << 20);
    CHECK(result.bytes_resumed + result.bytes_downloaded == size);
    CHECK((client.shown("large") == bytes));
    CHECK(client.entries() == 1);
    for (const Received& request : hub.server.requests()) {
        CHECK_FALSE(range_of(request).empty());
    }
    CHECK(before <= 4);
    CHECK(hub.requests() - before <= 4);

    fs::remove_all(client.cache.repository(file_repo));
    slow = true;
    std::uint64_t served = hub.bytes_served();
    error_of([&] { client.get(hub.item); });
    slow = false;
    client.get(hub.item);
    served = hub.bytes_served() - served;
    CHECK(served == size);
    CHECK((client.shown("large") == bytes));
}

TEST_CASE("ranges go straight to where the Hub sent the first one", "[download]") {
    const std::string bytes = bytes_of(66u << 20);
    FileHub far;
    far.add("large", bytes, true);
    std::atomic<int> refused{0};
    FileHub hub([&](const Received& received, FileAnswer& reply) {
        reply.status = 302;
        reply.body.clear();
        set_header(reply, "X-Linked-Etag", "\"" + far.item.files[0].etag() + "\"");
        set_header(reply, "Location", far.server.origin() + received.target);
    });
    hub.add("large", bytes, true);
    const TempFolder folder;
    Downloader client(hub, folder / "hub");
    client.get(hub.item);
    CHECK((client.shown("large") == bytes));
    CHECK(hub.requests() == 1);
    CHECK(far.requests() == 3);
    for (const Received& request : far.server.requests()) {
        CHECK_FALSE(request.headers.contains("authorization"));
    }
}

TEST_CASE("an address that has expired is asked for again", "[download]") {
    const std::string bytes = bytes_of(66u << 20);
    std::atomic<int> good{1};
    FileHub far([&](const Received&, FileAnswer& reply) {
        if (good-- <= 0) {
            reply.status = 403;
            reply.body = "expired";
        }
    });
    far.add("large", bytes, true);
    FileHub hub([&](const Received& received, FileAnswer& reply) {
        good = 1;
        reply.status = 302;
        reply.body.clear();
        set_header(reply, "Location", far.server.origin() + received.target);
    });
    hub.add("large", bytes, true);
    const TempFolder folder;
    Downloader client(hub, folder / "hub");
    client.get(hub.item);
    CHECK((client.shown("large") == bytes));
}

TEST_CASE("several processes download every byte once", "[download]") {
    for (const bool flock : {true, false}) {
        FileHub hub([](const Received&, FileAnswer&) { ::usleep(2000); });
        const TempFolder folder;
        for (int i = 0; i < 60; ++i) {
            hub.add("build/x/" + std::to_string(i), bytes_of(5000 + i, i), true);
        }
        hub.add("middle", bytes_of(5'000'000), true);
        std::vector<pid_t> children;
        for (int i = 0; i < 6; ++i) {
            const pid_t child = ::fork();
            if (child == 0) {
                int result = 1;
                try {
                    Downloader client(hub, folder / "hub", {.flock = flock});
                    client.get(hub.item);
                    result = client.shown("build/x/59") == bytes_of(5059, 59) &&
                                     client.shown("middle") == bytes_of(5'000'000)
                                 ? 0
                                 : 2;
                } catch (const Error& error) {
                    ::dprintf(2, "%s\n", error.what());
                }
                ::_exit(result);
            }
            children.push_back(child);
        }
        for (const pid_t child : children) {
            int status = 0;
            ::waitpid(child, &status, 0);
            CHECK(status == 0);
        }
        CHECK(hub.requests() == 61);
        CHECK(Downloader(hub, folder / "hub").entries() == 61);
    }
}

TEST_CASE("a write that fails ends the download, and what arrived is kept", "[download]") {
    FileHub hub;
    const TempFolder folder;
    hub.add("a", bytes_of(3'000'000), true);
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{1'000'000, 1'000'000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        Downloader client(hub, folder / "hub");
        const auto error = error_of([&] { client.get(hub.item); });
        ::_exit(error && error->code() == ErrorCode::failed && !client.shows("a") ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
    Downloader client(hub, folder / "hub");
    CHECK(client.get(hub.item).bytes_resumed > 0);
    CHECK(client.shown("a") == bytes_of(3'000'000));
}

TEST_CASE("snapshots without links", "[download]") {
    FileHub hub;
    const TempFolder folder;
    hub.add("a", "text");
    hub.add("b", "text");
    Downloader client(hub, folder / "hub", {.symlinks = false});
    client.get(hub.item);
    CHECK(fs::is_regular_file(fs::symlink_status(client.cache.file(file_repo, file_commit, "b"))));
    CHECK(client.get(hub.item).files_present == 2);
    CHECK(hub.requests() == 1);
}
