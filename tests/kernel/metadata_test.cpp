#include "kernel/metadata.h"

#include "base/json.h"
#include "base/throws.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::kernel;
using base::Json;
using test::error_of;

namespace {

Json minimal() {
    return Json::parse(R"({"id": "a_b_1f", "name": "a-b", "version": 1, "license": "MIT",
                           "python-depends": [], "backend": {"type": "cpu"}})");
}

Metadata parse(const Json& json) {
    return parse_metadata(json.dump(), "m.json");
}

bool refuses(const Json& changes) {
    Json json = minimal();
    json.update(changes);
    const auto error = error_of([&] { parse(json); });
    return error && error->code() == ErrorCode::malformed &&
           error->details().where.starts_with("m.json:1:");
}

}  // namespace

TEST_CASE("all of it") {
    Json json = minimal();
    const std::string commit(40, 'a');
    json.update(Json::parse(R"({"backend": {"type": "cuda", "archs": ["9.0", "x"], "new": 1},
        "digest": {"algorithm": "sha512", "files": {"a": "AA=="}}, "kernels-minver": "0.17.0",
        "kernel-depends": [{"repo-id": "o/n", "version": 2}, {"repo-id": "o/m", "revision": "r"}],
        "upstream": "https://e.org/u", "unknown": {}})"));
    json["provenance"] = {{"kernel-builder", {{"version", "1"}, {"sha", commit}, {"dirty", false}}},
                          {"kernel", {{"commit", commit}, {"dirty", true}}}};
    const Metadata metadata = parse(json);
    CHECK(metadata.package_name() == "a_b");
    CHECK(metadata.backend == target::BackendKind::cuda);
    CHECK(metadata.archs.size() == 2);
    CHECK(metadata.digest->files.at("a") == "AA==");
    CHECK(metadata.kernel_depends[0].version == 2);
    CHECK(metadata.kernel_depends[1].revision == "r");
    CHECK(metadata.provenance->dirty());
    CHECK_FALSE(parse(minimal()).digest);
}

TEST_CASE("missing and malformed keys are errors with their place") {
    for (const char* key : {"id", "name", "version", "license", "python-depends", "backend"}) {
        Json json = minimal();
        json.erase(key);
        CHECK(error_of([&] { parse(json); })->details().why.find(key) != std::string::npos);
    }
    CHECK(refuses({{"id", ""}}));
    CHECK(refuses({{"id", "a::b"}}));
    for (const char* name : {"A", "a", "a-", "-a", "1a", "a_b", "a b", ""}) {
        CHECK(refuses({{"name", name}}));
    }
    CHECK(refuses({{"version", -1}}));
    CHECK(refuses({{"version", 1.0}}));
    CHECK(refuses({{"version", "1"}}));
    CHECK(refuses({{"python-depends", "x"}}));
    CHECK(refuses({{"backend", {{"type", "CUDA"}}}}));
    CHECK(refuses({{"backend", Json::object()}}));
    CHECK(refuses({{"backend", {{"type", "cuda"}, {"archs", {9}}}}}));
    for (const char* version : {"0.17", "0.17.0.1", "a.b.c", "1..2", ""}) {
        CHECK(refuses({{"kernels-minver", version}}));
    }
    CHECK(refuses({{"digest", {{"algorithm", "md5"}, {"files", Json::object()}}}}));
    CHECK(refuses({{"kernel-depends", {{{"repo-id", "o/n"}}}}}));
    CHECK(refuses({{"kernel-depends", {{{"repo-id", "o/n"}, {"version", 1}, {"revision", "x"}}}}}));
    CHECK(refuses({{"provenance", {{"kernel", Json::object()}}}}));
    CHECK(refuses({{"provenance",
                    {{"kernel-builder", {{"version", "1"}, {"sha", "ab"}, {"dirty", true}}}}}}));
    CHECK(error_of([] { parse_metadata("[]", "m"); }));
    const std::string text = minimal().dump();
    CHECK(error_of([&] { parse_metadata("{\"id\":\"x\"," + text.substr(1), "m"); }));
    for (std::size_t i = 0; i < text.size(); ++i) {
        CHECK(error_of([&] { parse_metadata(text.substr(0, i), "m"); }));
    }
}
