// A signed build of our own: it verifies as it is, and not after any change.
#include "kernel/signature.h"

#include "catch.h"
#include "instance.h"
#include "kernel_folder.h"

using namespace twinkle;
using namespace twinkle::kernel;
using test::Json;
using test::RootSpec;
using test::SignatureSpec;
using test::TempFolder;

namespace {

const std::string community = "https://github.com/huggingface/kernels-community";
const std::string workflow = community + "/.github/workflows/build.yaml@refs/heads/main";

SignatureSpec by(const std::string& repository, const std::string& build_signer) {
    SignatureSpec spec;
    spec.signer.names = "critical,URI:" + build_signer;
    spec.signer.source_repository = repository;
    spec.signer.build_signer = build_signer;
    return spec;
}

// A build with a signature over its metadata, and the root that vouches for it.
class SignedBuild {
public:
    explicit SignedBuild(const SignatureSpec& spec = by(community, workflow),
                         const std::string& name = "layer-norm") {
        test::write_build(folder, "build", name, "cpu");
        sign(spec);
    }

    void sign(const SignatureSpec& spec) {
        folder.write("build/metadata.json.sigstore", instance.sign(metadata(), spec));
    }
    std::string metadata() const { return folder.read("build/metadata.json"); }
    std::string bundle() const { return folder.read("build/metadata.json.sigstore"); }
    sigstore::TrustedRoot root(const RootSpec& spec = {}) const {
        return sigstore::parse_trusted_root(instance.trusted_root(spec), "trusted_root.json");
    }
    SignatureVerdict check(const sigstore::TrustedRoot& with) const {
        return check_signature(folder / "build", "kernels-community/layer-norm", with);
    }
    SignatureVerdict check() const { return check(root()); }

    test::Instance instance;
    TempFolder folder;
};

std::string state(const SignatureVerdict& verdict) {
    return std::string(signature_state_name(verdict.state));
}

// Calls `check` after flipping one bit of each byte of a file; the file is restored afterwards.
template <typename Check>
void for_each_flip(const TempFolder& folder, const std::string& file, Check&& check) {
    const auto whole = folder.read(file);
    for (std::size_t at = 0; at < whole.size(); ++at) {
        auto changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ 1 << at % 7);
        folder.write(file, changed);
        check(at);
    }
    folder.write(file, whole);
}

}  // namespace

TEST_CASE("a signed build is verified, and it is said who signed when") {
    const SignedBuild build;
    const auto verdict = build.check();
    CHECK(state(verdict) == "verified");
    CHECK(verdict.verified());
    CHECK(verdict.workflow == workflow);
    CHECK(verdict.source_repository == community);
    REQUIRE(verdict.time);
    CHECK(sigstore::format_time(*verdict.time) == "2026-03-01T12:00:00Z");
    CHECK(verdict.words == "the build is signed by a trusted publisher");
}

TEST_CASE("all workflows of the publisher may sign, with both versions of Rekor") {
    for (const char* file : {"build", "build-mac", "build-windows", "sign-old-builds"}) {
        auto spec =
            by(community, community + "/.github/workflows/" + file + ".yaml@refs/heads/main");
        CHECK(state(SignedBuild(spec).check()) == "verified");
        spec.log = SignatureSpec::Log::v2;
        CHECK(state(SignedBuild(spec).check()) == "verified");
    }
}

TEST_CASE("other signers are named and refused") {
    const auto refused = [](const SignatureSpec& spec, const std::string& name) {
        const auto verdict = SignedBuild(spec).check();
        CHECK(state(verdict) == "signed-by-other");
        CHECK(verdict.why.find(name) != std::string::npos);
        CHECK(verdict.words.find("somebody else") != std::string::npos);
    };
    const std::string fork = "https://github.com/somebody/kernels-community";
    refused(by(fork, workflow), fork);
    refused(by(fork, fork + "/.github/workflows/build.yaml@refs/heads/main"), fork);
    for (const char* other : {"/.github/workflows/test.yaml@refs/heads/main",
                              "/.github/workflows/build.yaml@refs/heads/other",
                              "/.github/workflows/build.yaml@refs/heads/main2",
                              "/.github/workflows/build.yml@refs/heads/main"}) {
        refused(by(community, community + other), other);
    }
    auto spec = by(community, workflow);
    spec.signer.issuer = "https://example.org";
    refused(spec, workflow);
    spec = by(community, workflow);
    spec.signer.build_signer.clear();
    refused(spec, community);
    spec = by(community, workflow);
    spec.signer.other_issuer = "";  // only the older of the two extensions
    refused(spec, workflow);
    spec = by(community, workflow);
    spec.with_key = true;
    CHECK(state(SignedBuild(spec).check()) == "signed-by-other");
}

TEST_CASE("a statement about metadata.json is no signature of it") {
    auto spec = by(community, workflow);
    spec.dsse = true;
    CHECK(state(SignedBuild(spec).check()) == "bundle-malformed");
}

TEST_CASE("builds without signature, metadata or digest are told apart") {
    SignedBuild build;
    const auto metadata = build.metadata();
    std::filesystem::remove(build.folder / "build/metadata.json");
    CHECK(state(build.check()) == "not-signed");
    build.folder.write("build/metadata.json", metadata);
    std::filesystem::remove(build.folder / "build/metadata.json.sigstore");
    CHECK(state(build.check()) == "not-signed");

    auto less = Json::parse(metadata);
    less.erase("digest");
    build.folder.write("build/metadata.json", less.dump());
    build.sign(by(community, workflow));
    CHECK(state(build.check()) == "metadata-malformed");
    build.folder.write("build/metadata.json", "signed, and no metadata");
    build.sign(by(community, workflow));
    CHECK(state(build.check()) == "metadata-malformed");
}

TEST_CASE("metadata is not parsed before it is verified") {
    SignedBuild build;
    build.folder.write("build/metadata.json", std::string(200000, '['));
    CHECK(state(build.check()) == "metadata-differs");
}

TEST_CASE("swapped and cut bundles are refused") {
    SignedBuild build;
    const SignedBuild other(by(community, workflow), "other-name");
    const auto bundle = build.bundle();
    const auto swap = build.instance.sign(other.metadata(), by(community, workflow));
    build.folder.write("build/metadata.json.sigstore", swap);
    CHECK(state(build.check()) == "metadata-differs");
    build.folder.write("build/metadata.json.sigstore", other.bundle());
    CHECK(state(build.check()) == "root-too-old");  // of another instance
    for (std::size_t size = 0; size < bundle.size(); size += 97) {
        build.folder.write("build/metadata.json.sigstore", bundle.substr(0, size));
        CHECK(state(build.check()) == "bundle-malformed");
    }
    const auto metadata = build.metadata();
    build.folder.write("build/metadata.json.sigstore", bundle);
    for (std::size_t size = 0; size < metadata.size(); size += 13) {
        build.folder.write("build/metadata.json", metadata.substr(0, size));
        CHECK(state(build.check()) == "metadata-differs");
    }
}

TEST_CASE("a root that ended before the signature is too old for it") {
    const SignedBuild build;
    for (auto field : {&RootSpec::end, &RootSpec::authority_end, &RootSpec::certificate_log_end}) {
        RootSpec root;
        root.*field = "2026-02-01T00:00:00Z";
        const auto verdict = build.check(build.root(root));
        CHECK(state(verdict) == "root-too-old");
        CHECK(verdict.why.find("its newest entry is of 2026-01-01") != std::string::npos);
        CHECK(verdict.hint.find("trusted root") != std::string::npos);
    }
}

TEST_CASE("changed, missing and additional files are listed") {
    SignedBuild build;
    const auto layers = build.folder.read("build/layers.py");
    build.folder.write("build/layers.py", layers + "#");
    build.folder.write("build/more.py", "");
    auto verdict = build.check();
    CHECK(state(verdict) == "files-differ");
    CHECK(verdict.violations.size() == 2);
    CHECK(verdict.workflow == workflow);
    build.folder.write("build/layers.py", layers.substr(0, layers.size() / 2));
    CHECK(state(build.check()) == "files-differ");
    std::filesystem::remove(build.folder / "build/layers.py");
    CHECK(state(build.check()) == "files-differ");
    build.folder.write("build/layers.py", layers);
    std::filesystem::remove(build.folder / "build/more.py");
    build.folder.write("build/__pycache__/layers.cpython-311.pyc", "written by Python");
    CHECK(state(build.check()) == "verified");
}

TEST_CASE("a signed build in the repository of another kernel is not that kernel's") {
    const SignedBuild build(by(community, workflow), "other-name");
    const auto verdict = build.check();
    CHECK(state(verdict) == "other-kernel");
    CHECK(verdict.why.find("other-name") != std::string::npos);
}

TEST_CASE("no byte of metadata or files can change") {
    const SignedBuild build;
    const auto root = build.root();
    for_each_flip(build.folder, "build/metadata.json", [&](std::size_t at) {
        INFO(at);
        CHECK(state(build.check(root)) == "metadata-differs");
    });
    for (const char* file : {"build/__init__.py", "build/layers.py"}) {
        for_each_flip(build.folder, file, [&](std::size_t at) {
            INFO(file << " " << at);
            CHECK(state(build.check(root)) == "files-differ");
        });
    }
}

// Every byte counts as covered here, because the bundle has only one proof of its time. If the log
// vouches for the time, a bad timestamp is ignored, as in other verifiers, and so are witnesses'
// signatures of a checkpoint.
TEST_CASE("no covered byte of the bundle can change") {
    SignedBuild build;
    const auto root = build.root();
    auto spec = by(community, workflow);
    for (const auto log : {SignatureSpec::Log::v1, SignatureSpec::Log::v2}) {
        spec.log = log;
        build.sign(spec);
        int accepted = 0;
        for_each_flip(build.folder, "build/metadata.json.sigstore", [&](std::size_t at) {
            const auto verdict = build.check(root);
            if (verdict.verified()) {
                ++accepted;
                UNSCOPED_INFO("accepted at " << at << ": "
                                             << build.bundle().substr(at > 30 ? at - 30 : 0, 60));
            }
        });
        CHECK(accepted == 0);
    }
}
