// Every generated case has the expected outcome, for the expected reason.
#include "sigstore/verify.h"

#include "cases.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::sigstore;
using test::SignatureCase;

namespace {

Verified verify_case(const SignatureCase& one) {
    const auto root = parse_trusted_root(one.root, "trusted_root.json");
    const auto bundle = parse_bundle(one.bundle, "bundle.sigstore.json");
    const ArtifactBytes artifact(one.artifact);
    if (!one.key.empty()) {
        return verify_with_key(bundle, artifact, root, PublicKey::from_pem(one.key).value());
    }
    return verify(bundle, artifact, root, signed_by(one.identity, one.issuer));
}

// "accepted", the reason of a refusal, or any other exception.
std::string outcome(const SignatureCase& one) {
    try {
        const auto verified = verify_case(one);
        return verified.times.empty() ? "no time" : "accepted";
    } catch (const Refusal& refusal) {
        const bool malformed = refusal.reason() == Reason::malformed;
        const bool right_code =
            refusal.code() == (malformed ? ErrorCode::malformed : ErrorCode::verification);
        return right_code && !refusal.details().why.empty()
                   ? std::string(reason_name(refusal.reason()))
                   : "badly refused";
    } catch (const Error& error) {
        return error.code() == ErrorCode::malformed ? "malformed" : "other error";
    }
}

}  // namespace

TEST_CASE("generated signatures are accepted or refused for the right reason") {
    const test::Instance instance;
    const auto cases = test::signature_cases(instance);
    for (const auto& one : cases) {
        INFO(one.name);
        CHECK(outcome(one) == (one.refused ? reason_name(*one.refused) : "accepted"));
    }
    CHECK(cases.size() > 100);
}

TEST_CASE("what is verified says who, when and where") {
    const test::Instance instance;
    const std::string artifact = "abc";
    test::SignatureSpec spec{.timestamp = true};
    spec.signer.source_repository = "https://github.com/org/name";
    spec.signer.build_signer = test::default_identity;
    const auto verified =
        verify(parse_bundle(instance.sign(artifact, spec), "b"), ArtifactBytes(artifact),
               parse_trusted_root(instance.trusted_root(), "r"),
               signed_by(test::default_identity, test::default_issuer));
    REQUIRE(verified.signer);
    CHECK(verified.signer->identities == std::vector<std::string>{test::default_identity});
    CHECK(verified.signer->issuer == test::default_issuer);
    CHECK(verified.signer->issuer_in_both);
    CHECK(verified.signer->source_repository() == "https://github.com/org/name");
    CHECK(verified.signer->build_signer() == test::default_identity);
    CHECK(verified.log_index == 1006);
    CHECK(verified.log == "https://rekor.test");
    REQUIRE(verified.times.size() == 2);
    for (const auto& [source, time] : verified.times) {
        CHECK(format_time(time) == "2026-03-01T12:00:00Z");
    }
    CHECK(verified.times[0].source != verified.times[1].source);
}
