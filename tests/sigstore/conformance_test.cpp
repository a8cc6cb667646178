// The public conformance suite, if it is beside the repository or at TWINKLE_CONFORMANCE. tests/cli
// runs the same cases through the program.
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "catch.h"
#include "sigstore/verify.h"
#include "twinkle/error.h"

using namespace twinkle;
using namespace twinkle::sigstore;
namespace fs = std::filesystem;

namespace {

fs::path suite() {
    const char* given = std::getenv("TWINKLE_CONFORMANCE");
    return given != nullptr ? fs::path(given)
                            : fs::path(TWINKLE_SOURCE_DIR) / "../shared/conformance/sigstore";
}

std::string said(const fs::path& file, const std::string& otherwise) {
    if (!fs::exists(file)) {
        return otherwise;
    }
    auto text = base::read_file(file, "part of a case");
    while (text.ends_with('\n')) {
        text.pop_back();
    }
    return text;
}

void verify_case(const fs::path& folder) {
    const auto root_path = folder / "trusted_root.json";
    const auto root = fs::exists(root_path) ? read_trusted_root(root_path) : public_trusted_root();
    const ArtifactFile artifact(fs::exists(folder / "artifact") ? folder / "artifact"
                                                                : folder.parent_path() / "a.txt");
    const auto bundle = read_bundle(folder / "bundle.sigstore.json");
    if (fs::exists(folder / "key.pub")) {
        const auto key = PublicKey::from_pem(base::read_file(folder / "key.pub", "key"));
        if (!key) {
            throw Error(ErrorCode::malformed,
                        {.what = "no key", .where = {}, .why = {}, .hint = {}});
        }
        verify_with_key(bundle, artifact, root, *key);
        return;
    }
    verify(bundle, artifact, root,
           signed_by(said(folder / "identity",
                          "https://github.com/sigstore-conformance/"
                          "extremely-dangerous-public-oidc-beacon/.github/workflows/"
                          "extremely-dangerous-oidc-beacon.yml@refs/heads/main"),
                     said(folder / "issuer", "https://token.actions.githubusercontent.com")));
}

}  // namespace

TEST_CASE("the public conformance suite") {
    if (!fs::is_directory(suite())) {
        WARN("skipped: the conformance suite is not at " << suite().string());
        return;
    }
    int cases = 0;
    for (const auto& entry : fs::directory_iterator(suite())) {
        if (!entry.is_directory()) {
            continue;
        }
        ++cases;
        INFO(entry.path().filename().string());
        if (entry.path().filename().string().ends_with("_fail")) {
            CHECK_THROWS_AS(verify_case(entry.path()), Error);
        } else {
            CHECK_NOTHROW(verify_case(entry.path()));
        }
    }
    CHECK(cases > 0);
}

TEST_CASE("the built-in trusted root is that of the public instance") {
    const auto& root = public_trusted_root();
    CHECK(root.signature_logs.size() >= 2);
    CHECK(root.certificate_logs.size() >= 2);
    CHECK(root.authorities.size() >= 2);
    CHECK_FALSE(root.timestamp_authorities.empty());
    CHECK(root.recorded.size() == 10);
    CHECK(root.newest() >= parse_time("2025-09-23T00:00:00Z"));
    CHECK(root.description().find("built in, of " + root.recorded) != std::string::npos);
}
