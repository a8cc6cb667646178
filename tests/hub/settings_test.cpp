#include "hub/settings.h"

#include <concepts>
#include <fstream>
#include <ostream>

#include "../base/temp_folder.h"
#include "../base/throws.h"
#include "../target/virtual_machine.h"
#include "catch.h"
#include "hub/token_in_the_clear.h"

using namespace twinkle;
using namespace twinkle::hub;
using test::error_of;
using test::TempFolder;
using test::VirtualMachine;

namespace {

struct Home {
    TempFolder folder;
    VirtualMachine machine;

    Home() { machine.variables["HOME"] = folder.path(); }
    Settings settings(std::string_view agent = "") const { return settings_from(machine, agent); }
    std::string token() const { return std::string(settings().token.reveal()); }
    void set(const std::string& name, const std::string& value) { machine.variables[name] = value; }
};

template <typename T>
concept printable = requires(std::ostream& out, const T& value) { out << value; };

static_assert(!printable<Secret>);
static_assert(!std::convertible_to<Secret, std::string>);
static_assert(!std::convertible_to<Secret, std::string_view>);

}  // namespace

TEST_CASE("the endpoint is the public Hub, or what HF_ENDPOINT says") {
    Home home;
    CHECK(home.settings().endpoint == "https://huggingface.co");
    home.set("HF_ENDPOINT", "");
    CHECK(home.settings().endpoint == "https://huggingface.co");
    home.set("HF_ENDPOINT", "http://127.0.0.1:8080/hub//");
    CHECK(home.settings().endpoint == "http://127.0.0.1:8080/hub");
    for (const char* text : {"huggingface.co", "ftp://h", "file:///x", "https://u:p@h",
                             "https://h/?a=b", "https://h/#f", "https://", "https://h\n.example",
                             "http://:80", "https:///x", "http://h\\x"}) {
        home.set("HF_ENDPOINT", text);
        const auto error = error_of([&] { home.settings(); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::malformed);
        CHECK(error->details().where == "HF_ENDPOINT");
        CHECK_THAT(error->what(), !ContainsSubstring("u:p"));
    }
}

TEST_CASE("the token comes from the first place that has one") {
    Home home;
    CHECK(home.settings().token.empty());
    home.folder.write(".cache/huggingface/token", "hf_home\n");
    CHECK(home.token() == "hf_home");
    home.set("XDG_CACHE_HOME", home.folder / "xdg");
    CHECK(home.token().empty());
    home.folder.write("xdg/huggingface/token", " hf_xdg ");
    CHECK(home.token() == "hf_xdg");
    home.folder.write("hf/token", "hf_hf\r\n");
    home.set("HF_HOME", "~/hf");
    CHECK(home.token() == "hf_hf");
    home.folder.write("path", "hf_path");
    home.set("HF_TOKEN_PATH", "~/path");
    CHECK(home.token() == "hf_path");
    home.set("HUGGING_FACE_HUB_TOKEN", "hf_old");
    CHECK(home.token() == "hf_old");
    home.set("HF_TOKEN", "hf_new\n");
    CHECK(home.token() == "hf_new");
    home.set("HF_TOKEN", "");
    CHECK(home.token() == "hf_old");
    home.set("HF_HUB_DISABLE_IMPLICIT_TOKEN", "yes");
    CHECK(home.settings().token.empty());
}

TEST_CASE("a token that is none is refused without being said") {
    Home home;
    for (const std::string text :
         {"hf_sec\nret", "hf_sec ret", "hf_sec\x01ret", "hf_secr\xc3\xa9t"}) {
        home.set("HF_TOKEN", text);
        const auto error = error_of([&] { home.settings(); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::malformed);
        CHECK(error->details().where == "HF_TOKEN");
        CHECK_THAT(error->what(), !ContainsSubstring("hf_sec"));
    }
    home.set("HF_TOKEN", "");
    home.folder.write(".cache/huggingface/token", std::string(5000, 'x'));
    const auto error = error_of([&] { home.settings(); });
    REQUIRE(error);
    CHECK_THAT(error->what(), ContainsSubstring("4096"));
    CHECK_THAT(error->what(), !ContainsSubstring("xxxx"));
}

TEST_CASE("offline and telemetry as the Python tools read them") {
    Home home;
    CHECK_FALSE(home.settings().offline);
    for (const char* text : {"1", "ON", "on", "Yes", "TRUE"}) {
        home.set("HF_HUB_OFFLINE", text);
        CHECK(home.settings().offline);
    }
    for (const char* text : {"", "0", "false", "2", " 1"}) {
        home.set("HF_HUB_OFFLINE", text);
        CHECK_FALSE(home.settings().offline);
    }
    CHECK(home.settings().user_agent == "twinkle/" TWINKLE_VERSION
                                        "; platform/x86_64-linux; glibc/2.36; file_type/kernel");
    CHECK(home.settings("my-server/2.1; torch/2.13;  my-server/2.1").user_agent ==
          "twinkle/" TWINKLE_VERSION
          "; my-server/2.1; torch/2.13; platform/x86_64-linux; glibc/2.36; "
          "file_type/kernel");
    home.set("HF_HUB_USER_AGENT_ORIGIN", "acme");
    CHECK_THAT(home.settings().user_agent, ContainsSubstring("; origin/acme"));
    CHECK(error_of([&] { home.settings("a\r\nX-Evil: 1"); }));
    for (const char* name : {"HF_HUB_DISABLE_TELEMETRY", "DISABLE_TELEMETRY", "DO_NOT_TRACK"}) {
        home.set(name, "1");
        CHECK_FALSE(home.settings("my-server/2.1").telemetry);
        CHECK(home.settings("my-server/2.1").user_agent.empty());
        home.set(name, "");
    }
}

TEST_CASE("time-outs, certificates and proxies") {
    Home home;
    CHECK(home.settings().etag_timeout.count() == 10);
    home.set("HF_HUB_ETAG_TIMEOUT", "3");
    home.set("HF_HUB_DOWNLOAD_TIMEOUT", "0");
    CHECK(home.settings().etag_timeout.count() == 3);
    CHECK(home.settings().download_timeout.count() == 10);
    for (const char* text : {"fast", "-1", "1.5", "99999999999"}) {
        home.set("HF_HUB_ETAG_TIMEOUT", text);
        CHECK(error_of([&] { home.settings(); }));
    }
    home.set("HF_HUB_ETAG_TIMEOUT", "");

    home.set("SSL_CERT_FILE", home.folder.write("system.pem", ""));
    CHECK(home.settings().ca_file == home.folder / "system.pem");
    home.set("REQUESTS_CA_BUNDLE", home.folder.path());
    CHECK(home.settings().ca_folder == home.folder.path());
    CHECK(home.settings().ca_file.empty());
    home.set("CURL_CA_BUNDLE", "/nowhere.pem");
    CHECK(error_of([&] { home.settings(); }));
    home.set("CURL_CA_BUNDLE", "");

    home.set("HTTP_PROXY", "http://evil");  // only in lower case, as curl
    home.set("HTTPS_PROXY", "http://proxy:3128");
    home.set("ALL_PROXY", "socks5://all");
    home.set("no_proxy", "localhost");
    CHECK(home.settings().proxies.http == "socks5://all");
    CHECK(home.settings().proxies.https == "http://proxy:3128");
    CHECK(home.settings().proxies.none == "localhost");
}

TEST_CASE("the least rate") {
    Home home;
    CHECK(home.settings().low_speed_limit == 1024);
    CHECK(home.settings().low_speed_time.count() == 30);
    // A longer timeout for the answer also allows a slower one.
    home.set("HF_HUB_ETAG_TIMEOUT", "100");
    CHECK(home.settings().low_speed_time.count() == 300);
    home.set("TWINKLE_LOW_SPEED_TIME", "7");
    home.set("TWINKLE_LOW_SPEED_LIMIT", "0");
    CHECK(home.settings().low_speed_time.count() == 7);
    CHECK(home.settings().low_speed_limit == 0);
    home.set("TWINKLE_LOW_SPEED_TIME", "0");
    home.set("TWINKLE_LOW_SPEED_LIMIT", "1000000");
    CHECK(home.settings().low_speed_time.count() == 300);
    CHECK(home.settings().low_speed_limit == 1'000'000);
    for (const char* name : {"TWINKLE_LOW_SPEED_LIMIT", "TWINKLE_LOW_SPEED_TIME"}) {
        for (const char* text : {"fast", "-1", "1.5", "1k", "99999999999999999999"}) {
            home.set(name, text);
            const auto error = error_of([&] { home.settings(); });
            REQUIRE(error);
            CHECK(error->code() == ErrorCode::malformed);
            CHECK(error->details().where == name);
        }
        home.set(name, "");
    }
}

TEST_CASE("a token goes to another machine by https alone") {
    Home home;
    const auto refused = [&](const std::string& endpoint) {
        home.set("HF_ENDPOINT", endpoint);
        const auto error = error_of([&] { refuse_token_in_the_clear(home.settings()); });
        if (error) {
            CHECK(error->code() == ErrorCode::refused);
            CHECK_THAT(error->details().hint, ContainsSubstring("TWINKLE_TOKEN_OVER_HTTP=1"));
            CHECK_THAT(error->what(), !ContainsSubstring("hf_secret"));
        }
        return error.has_value();
    };
    CHECK_FALSE(refused("http://mirror.example"));  // there is no token
    home.set("HF_TOKEN", "hf_secret");
    for (const char* endpoint :
         {"https://huggingface.co", "https://mirror.example", "http://localhost",
          "http://localhost:8080/hub", "http://127.0.0.1:80", "http://127.8.9.10",
          "http://[::1]:8080/hub"}) {
        CHECK_FALSE(refused(endpoint));
    }
    for (const char* endpoint :
         {"http://huggingface.co", "http://mirror.example:8080", "http://127.0.0.1.example",
          "http://127.1", "http://10.0.0.1", "http://[fe80::1]", "http://localhost.example",
          "http://2130706433", "http://0.0.0.0"}) {
        CHECK(refused(endpoint));
    }
    // A proxy on another machine can read requests to this one.
    home.set("http_proxy", "http://me:pass@proxy.example:3128");
    CHECK(refused("http://127.0.0.1:80"));
    CHECK_FALSE(refused("https://mirror.example"));
    home.set("no_proxy", "localhost,127.0.0.1");
    CHECK_FALSE(refused("http://127.0.0.1:80"));
    home.set("no_proxy", "");
    home.set("http_proxy", "http://me:pass@127.0.0.1:3128");
    CHECK_FALSE(refused("http://127.0.0.1:80"));
    CHECK(refused("http://mirror.example"));
    home.set("TWINKLE_TOKEN_OVER_HTTP", "1");
    CHECK_FALSE(refused("http://mirror.example"));
}

TEST_CASE("a secret is left out of core dumps") {
    const Secret secret("hf_a_token_of_a_test");
    const Secret copy = secret;
    CHECK(copy.reveal() == "hf_a_token_of_a_test");
    CHECK(Secret("").empty());
    const auto address = reinterpret_cast<std::uintptr_t>(secret.reveal().data());
    std::ifstream maps("/proc/self/smaps");
    bool inside = false, excluded = false;
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t first = 0, last = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2) {
            inside = first <= address && address < last;
        } else if (inside && line.starts_with("VmFlags:")) {
            excluded = (line + " ").find(" dd ") != std::string::npos;
        }
    }
    CHECK(excluded);
}
