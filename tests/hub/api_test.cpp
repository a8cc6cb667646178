#include "hub/api.h"

#include <fmt/format.h>

#include "../base/throws.h"
#include "catch.h"
#include "http_client.h"

using namespace twinkle;
using namespace twinkle::hub;
using test::answer;
using test::Answer;
using test::Client;
using test::error_of;
using test::FakeClock;
using test::LoopbackServer;
using test::Received;

namespace {

const std::string commit_id(40, 'c');
const std::string blob_id(40, 'b');
const std::string sha256(64, 'a');

// A Hub whose answers depend on the requested path.
struct Fixture {
    std::map<std::string, Answer> answers;  // by target
    LoopbackServer server{[this](const Received& received) {
        const auto found = answers.find(received.target);
        return found != answers.end()
                   ? found->second
                   : answer(404, R"({"error":"no"})", {{"X-Error-Code", "EntryNotFound"}});
    }};
    FakeClock clock;
    Settings settings = Client::settings_for(server.origin(), {});

    Hub hub() { return Hub(settings, {.clock = &clock}); }
    void on(const std::string& target, const std::string& body, int status = 200,
            const std::vector<std::pair<std::string, std::string>>& headers = {}) {
        answers[target] = answer(status, body, headers);
    }
};

const std::string refs_target = "/api/kernels/org/name/refs";
const std::string tree_target =
    "/api/kernels/org/name/tree/" + commit_id + "?recursive=true&expand=false";

std::string entry(const std::string& path, const std::string& more = "") {
    return fmt::format(R"({{"type":"file","path":"{}","size":5,"oid":"{}"{}}})", path, blob_id,
                       more);
}

std::string folder(const std::string& path) {
    return fmt::format(R"({{"type":"directory","path":"{}","size":0,"oid":"{}"}})", path, blob_id);
}

Error tree_error(Fixture& fixture, const std::string& body) {
    fixture.on(tree_target, body);
    const auto error = error_of([&] { fixture.hub().tree("org/name", commit_id); });
    REQUIRE(error);
    return *error;
}

}  // namespace

TEST_CASE("refs of a repository") {
    Fixture fixture;
    fixture.on(refs_target, fmt::format(R"({{"branches":[
        {{"name":"main","ref":"refs/heads/main","targetCommit":"{0}"}},
        {{"name":"a b","ref":"refs/heads/a b","targetCommit":"{0}"}}],
        "converts":[],"tags":[{{"name":"v0.1.0","ref":"refs/tags/v0.1.0","targetCommit":"{0}"}}]}})",
                                        commit_id));
    Hub hub = fixture.hub();
    const Refs refs = hub.refs("org/name");
    REQUIRE(refs.branches.size() == 1);  // the other cannot be requested
    CHECK(refs.branches[0].name == "main");
    CHECK(refs.branches[0].ref == "refs/heads/main");
    CHECK(refs.branches[0].commit == commit_id);
    REQUIRE(refs.tags.size() == 1);
    CHECK(refs.tags[0].name == "v0.1.0");
    CHECK(test::header_of(fixture.server.requests()[0], "accept-encoding") == "gzip, deflate");
}

TEST_CASE("answers that no Hub gives") {
    Fixture fixture;
    for (const std::string& body :
         {std::string("<html>log in</html>"), std::string(), std::string("[]"), std::string("{}"),
          std::string(R"({"branches":{}})"), std::string(R"({"branches":[1]})"),
          std::string(
              R"({"branches":[{"name":"v1","ref":"refs/heads/v1","targetCommit":"../.."}]})"),
          std::string(R"({"branches":[{"name":1,"ref":"x","targetCommit":"x"}]})"),
          std::string(R"({"branches":[],"branches":[]})"),
          std::string(200'000, '[') + std::string(200'000, ']')}) {
        fixture.on(refs_target, body);
        const auto error = error_of([&] { fixture.hub().refs("org/name"); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::unreachable);
        CHECK(error->details().where == fixture.server.origin() + refs_target);
        CHECK_FALSE(error->details().hint.empty());
    }
}

TEST_CASE("the commit of a revision, quoted as one part of the path") {
    Fixture fixture;
    fixture.on("/api/kernels/org/name/revision/refs%2Fpr%2F1",
               R"({"id":"org/name","sha":")" + commit_id + "\"}");
    fixture.on("/api/kernels/org/name/revision/main", R"({"sha":"../../etc"})");
    Hub hub = fixture.hub();
    CHECK(hub.commit("org/name", "refs/pr/1") == commit_id);
    CHECK(error_of([&] { hub.commit("org/name"); })->code() == ErrorCode::unreachable);
    for (const char* revision : {"", "a..b", "../x", "a b", "a\nb", "x~1", "-?"}) {
        CHECK(error_of([&] { hub.commit("org/name", revision); })->code() == ErrorCode::malformed);
    }
    for (const char* repo : {"", "name", "org/", "/name", "org/../x", "org/name/x", "org/na me",
                             "org/a--b", "org/.x", "org/x.git", "org/x?y"}) {
        CHECK(error_of([&] { hub.refs(repo); })->code() == ErrorCode::malformed);
    }
    CHECK(fixture.server.requests().size() == 2);
}

TEST_CASE("a tree over several pages") {
    Fixture fixture;
    fixture.on(tree_target, "[" + folder("build") + "," + entry("build/x.py") + "]", 200,
               {{"Link", "<" + fixture.server.origin() + "/page?cursor=a%3D>; rel=\"next\""}});
    fixture.on("/page?cursor=a%3D",
               "[" +
                   entry("a.so",
                         fmt::format(
                             R"(,"lfs":{{"oid":"{0}","size":5,"pointerSize":100}},"xetHash":"{0}")",
                             sha256)) +
                   "]",
               200, {{"Link", "</page?cursor=b>; rel=\"next\""}});
    fixture.on("/page?cursor=b", "[]");
    const auto files = fixture.hub().tree("org/name", commit_id);
    REQUIRE(files.size() == 2);
    CHECK(files[0].path == "a.so");
    CHECK(files[0].size == 5);
    CHECK(files[0].lfs_sha256 == sha256);
    CHECK(files[0].xet_hash == sha256);
    CHECK(files[0].etag() == sha256);
    CHECK(files[1].path == "build/x.py");
    CHECK(files[1].etag() == blob_id);
}

TEST_CASE("a folder of a tree, files and folders apart") {
    Fixture fixture;
    const std::string target =
        "/api/kernels/org/name/tree/v1/build/a%20b?recursive=false&expand=false";
    fixture.on(target, "[" + folder("build/a b/y") + "," + folder("build/a b/x") + "," +
                           entry("build/a b/z.py") + "]");
    const TreeRequest wanted{"org/name", "v1", "build/a b", false};
    const auto trees = fixture.hub().trees(std::span(&wanted, 1));
    CHECK(trees.at(0).folders == std::vector<std::string>{"build/a b/x", "build/a b/y"});
    CHECK(trees.at(0).files.size() == 1);
    fixture.on(target, "[" + entry("build/other.py") + "]");
    CHECK(error_of([&] { fixture.hub().trees(std::span(&wanted, 1)); }));
    CHECK(error_of([&] { fixture.hub().tree("org/name", "v1", "../.."); })->code() ==
          ErrorCode::malformed);
}

TEST_CASE("trees that would write where they should not") {
    Fixture fixture;
    for (const std::string path : {"../evil.py", "build/../../evil.py", "/tmp/evil.py",
                                   "build\\\\evil.py", "build/evil\\u0000.py", "build/./evil.py",
                                   "build//evil.py", "build/a\\nb.py", "..", "", ".", "build/"}) {
        CHECK(tree_error(fixture, "[" + entry(path) + "]").code() == ErrorCode::unreachable);
        CHECK(tree_error(fixture, "[" + folder(path) + "]").code() == ErrorCode::unreachable);
    }
    CHECK_THAT(tree_error(fixture, "[" + entry(std::string(3000, 'x')) + "]").what(),
               ContainsSubstring("longer"));
    CHECK_THAT(tree_error(fixture, "[" + entry("a") + "," + entry("a") + "]").what(),
               ContainsSubstring("twice"));
    CHECK_THAT(
        tree_error(fixture, "[" + entry("a") + "," + entry("a-") + "," + entry("a/b") + "]").what(),
        ContainsSubstring("a file and a folder"));
    CHECK_THAT(tree_error(fixture, "[" + entry("a") + "," + folder("a") + "]").what(),
               ContainsSubstring("a file and a folder"));
}

TEST_CASE("entries of a tree that are none") {
    Fixture fixture;
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = entry("a", R"(,"lfs":{"oid":")" + sha256 + R"(","size":5})");
        text.replace(text.find(from), from.size(), to);
        return tree_error(fixture, "[" + text + "]");
    };
    for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
             {"\"size\":5", "\"size\":-5"},
             {"\"size\":5", "\"size\":\"5\""},
             {"\"size\":5", "\"size\":1e30"},
             {"\"size\":5", "\"size\":18446744073709551615"},
             {blob_id, "../../../../evil"},
             {blob_id, std::string(40, 'B')},
             {sha256, "../evil"},
             {sha256, blob_id},
             {"\"size\":5}", "\"size\":6}"},
             {"{\"oid\":\"" + sha256 + "\",\"size\":5}", "[]"},
             {"\"type\":\"file\"", "\"type\":7"}}) {
        INFO(to);
        CHECK(with(from, to).code() == ErrorCode::unreachable);
    }
    CHECK(tree_error(fixture, "[1]").code() == ErrorCode::unreachable);
    CHECK(tree_error(fixture, R"({"error":"no"})").code() == ErrorCode::unreachable);
}

TEST_CASE("pages without an end, or elsewhere") {
    Fixture fixture;
    const auto error_with = [&](const std::string& link, const std::string& body) {
        fixture.on(tree_target, body, 200, {{"Link", "<" + link + ">; rel=\"next\""}});
        return *error_of([&] { fixture.hub().tree("org/name", commit_id); });
    };
    CHECK_THAT(error_with(tree_target, "[]").what(), ContainsSubstring("no end"));
    const LoopbackServer other([](const Received&) { return answer(200, "[]"); });
    for (const std::string& link : {other.origin() + "/x", std::string("file:///etc/passwd"),
                                    std::string("ftp://127.0.0.1/x")}) {
        CHECK_THAT(error_with(link, "[]").what(), ContainsSubstring("another host"));
    }
    CHECK(other.requests().empty());

    std::atomic<int> pages{0};
    const LoopbackServer endless([&](const Received&) {
        const std::string next = std::to_string(++pages);
        return answer(200, "[" + entry("f" + next) + "]",
                      {{"Link", "</page?cursor=" + next + ">; rel=\"next\""}});
    });
    Hub hub(Client::settings_for(endless.origin(), {}));
    CHECK_THAT(error_of([&] { hub.tree("org/name", commit_id); })->what(),
               ContainsSubstring("no end"));
    CHECK(pages <= 500);
}

TEST_CASE("small files are read whole and held against their hash") {
    Fixture fixture;
    const std::string url =
        "/kernels/org/name/resolve/" + commit_id + "/build/a%20%23/metadata.json";
    fixture.on(url, "hello");
    cache::TreeFile file;
    file.path = "build/a #/metadata.json";
    file.size = 5;
    file.blob_id = "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0";
    Hub hub = fixture.hub();
    CHECK(hub.read_file("org/name", commit_id, file) == "hello");
    const auto request = fixture.server.requests().at(0);
    CHECK(test::header_of(request, "accept-encoding") == "identity");
    CHECK(test::header_of(request, "x-hf-download-counter") == "1");

    CHECK(error_of([&] { hub.read_file("org/name", commit_id, file, 4); })->code() ==
          ErrorCode::malformed);
    fixture.on(url, "hellO");
    CHECK(error_of([&] { hub.read_file("org/name", commit_id, file); })->code() ==
          ErrorCode::verification);
    fixture.on(url, "hell");
    const auto error = error_of([&] { hub.read_file("org/name", commit_id, file); });
    CHECK(error->code() == ErrorCode::verification);
    CHECK_THAT(error->what(), ContainsSubstring("metadata.json"));

    const std::vector<cache::TreeFile> many(40, file);
    fixture.on(url, "hello");
    CHECK(hub.read_files("org/name", commit_id, many) == std::vector<std::string>(40, "hello"));
}

TEST_CASE("whom the Hub vouches for") {
    Fixture fixture;
    const auto overview = [](const char* org) {
        return fmt::format("/api/organizations/{}/overview", org);
    };
    fixture.on(overview("good"), R"({"name":"good","trustedKernelPublisher":true})");
    fixture.on(overview("other"), R"({"name":"other","trustedKernelPublisher":false})");
    fixture.on(overview("plain"), R"({"name":"plain"})");
    fixture.on(overview("odd"), R"({"name":"odd","trustedKernelPublisher":"true"})");
    fixture.on(overview("user"), "{}", 404);
    fixture.on(overview("broken"), "{}", 500);
    Hub hub = fixture.hub();
    const std::vector<std::string> orgs{"user", "good", "other", "plain", "odd"};
    CHECK(hub.are_trusted_publishers(orgs) == std::vector<bool>{false, true, false, false, false});
    const auto ask = [&](const char* org) {
        hub.are_trusted_publishers(std::vector<std::string>{org});
    };
    CHECK(error_of([&] { ask("broken"); })->code() == ErrorCode::unreachable);
    CHECK(error_of([&] { ask("../x"); })->code() == ErrorCode::malformed);
}

TEST_CASE("repositories that have moved") {
    Fixture fixture;
    const std::string url = "/kernels/org/name/resolve/main/kernel-status.toml";
    Hub hub = fixture.hub();
    CHECK_FALSE(hub.redirect("org/name"));
    fixture.on(url, "kind = \"redirect\"\ndestination = \"new/name\"\n");
    CHECK(hub.redirect("org/name")->repo_id == "new/name");
    CHECK(hub.redirect("org/name")->revision == "main");
    fixture.on(url, "kind = \"redirect\"\ndestination = \"new/name\"\nrevision = \"v2\"\n");
    CHECK(hub.redirect("org/name")->revision == "v2");
    const std::vector<Revision> both{{"org/other", "main"}, {"org/name", "main"}};
    const auto redirects = hub.redirects(both);
    CHECK_FALSE(redirects.at(0));
    CHECK(redirects.at(1)->repo_id == "new/name");
    for (const char* text : {"", "kind = \"gone\"", "kind = \"redirect\"", "= 1", "kind = 1",
                             "kind = \"redirect\"\ndestination = \"../../x\"",
                             "kind = \"redirect\"\ndestination = \"a/b\"\nrevision = \"../x\""}) {
        fixture.on(url, text);
        CHECK(error_of([&] { hub.redirect("org/name"); })->code() == ErrorCode::malformed);
    }
}

TEST_CASE("refusals are told apart") {
    struct Case {
        int status;
        std::string code, message;
        bool token;
        ErrorCode exit;
        std::string says;
    };
    const std::vector<Case> cases{
        {401, "RepoNotFound", "Invalid username or password.", false, ErrorCode::not_found,
         "HF_TOKEN"},
        {401, "", "", false, ErrorCode::not_found, "private"},
        {404, "RepoNotFound", "Repository not found", true, ErrorCode::not_found,
         "rights of the token"},
        {401, "", "Invalid credentials in Authorization header", true, ErrorCode::unreachable,
         "refuses the token"},
        {401, "GatedRepo", "Access is restricted", false, ErrorCode::unreachable,
         "then set HF_TOKEN"},
        {403, "GatedRepo", "Access is restricted", true, ErrorCode::unreachable,
         "/kernels/org/name"},
        {403, "", "Access to this resource is disabled.", true, ErrorCode::unreachable, "disabled"},
        {403, "", "no", true, ErrorCode::unreachable, "denies access"},
        {404, "RevisionNotFound", "Invalid rev id", true, ErrorCode::not_found,
         "no revision \"v9\""},
        {404, "EntryNotFound", "Entry not found", true, ErrorCode::not_found, "is not there"},
        {404, "", "", true, ErrorCode::not_found, "is HF_ENDPOINT a Hub"},
        {429, "", "", true, ErrorCode::unreachable, "too many requests"},
        {503, "", "", true, ErrorCode::unreachable, "503"},
        {400, "", "Bad \x1b[31m request", true, ErrorCode::unreachable, "\\x1B"},
    };
    for (const Case& one : cases) {
        INFO(one.status << " " << one.code << " " << one.message);
        Fixture fixture;
        if (!one.token) {
            fixture.settings.token = Secret();
        }
        std::vector<std::pair<std::string, std::string>> headers;
        if (!one.code.empty()) {
            headers.emplace_back("X-Error-Code", one.code);
        }
        headers.emplace_back("X-Error-Message", one.message);
        fixture.on("/api/kernels/org/name/revision/v9", "{}", one.status, headers);
        const auto error = error_of([&] { fixture.hub().commit("org/name", "v9"); });
        REQUIRE(error);
        CHECK(error->code() == one.exit);
        CHECK_THAT(error->what(), ContainsSubstring(one.says));
        CHECK_THAT(error->what(), ContainsSubstring("org/name"));
        CHECK_THAT(error->what(), !ContainsSubstring(test::token));
    }
}

TEST_CASE("offline, nothing is asked") {
    Fixture fixture;
    fixture.settings.offline = true;
    Hub hub = fixture.hub();
    const cache::TreeFile file{"a", 0, blob_id, {}, {}};
    const std::vector<std::function<void()>> calls{
        [&] { hub.refs("org/name"); },
        [&] { hub.commit("org/name"); },
        [&] { hub.tree("org/name", commit_id); },
        [&] { hub.read_file("org/name", commit_id, file); },
        [&] { hub.are_trusted_publishers(std::vector<std::string>{"org"}); },
        [&] { hub.redirect("org/name"); }};
    for (const auto& call : calls) {
        const auto error = error_of(call);
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::unreachable);
        CHECK_THAT(error->what(), ContainsSubstring("offline"));
        CHECK_THAT(error->details().hint, ContainsSubstring("twinkle fetch"));
    }
    CHECK(fixture.server.requests().empty());
}

TEST_CASE(
    "many questions at once are answered in their order; one that fails leaves nothing behind") {
    Fixture fixture;
    std::vector<Revision> wanted;
    for (int i = 0; i < 60; ++i) {
        const std::string name = "v" + std::to_string(i);
        wanted.push_back({"org/name", name});
        fixture.on("/api/kernels/org/name/revision/" + name,
                   fmt::format(R"({{"sha":"{:040x}"}})", i));
    }
    Hub hub = fixture.hub();
    const auto commits = hub.commits(wanted);
    for (int i = 0; i < 60; ++i) {
        CHECK(commits.at(static_cast<std::size_t>(i)) == fmt::format("{:040x}", i));
    }
    const auto asked = fixture.server.requests().size();
    wanted.push_back({"org/name", "bad..name"});
    CHECK(error_of([&] { hub.commits(wanted); }));
    CHECK(fixture.server.requests().size() == asked);
    wanted.back().revision = "missing";
    CHECK(error_of([&] { hub.commits(wanted); })->code() == ErrorCode::not_found);
    CHECK(hub.commit("org/name", "v7") == fmt::format("{:040x}", 7));
}
