#include "sigstore/verify.h"

#include <algorithm>

#include "base/text.h"
#include "sigstore/chain.h"
#include "sigstore/dsse.h"
#include "sigstore/log_body.h"
#include "sigstore/log_entry.h"
#include "sigstore/refusal.h"
#include "sigstore/sct.h"
#include "sigstore/timestamp.h"

namespace twinkle::sigstore {
namespace {

// The signer's key, in the form in which the log names it.
struct Material {
    PublicKey key;
    std::string verifier;  // DER of certificate or key
    bool certificate = false;
};

// Every timestamp must be well-formed; those by unknown authorities prove nothing and do no harm,
// as long as another time is proved.
std::vector<VerifiedTime> verify_timestamps(const Bundle& bundle, const TrustedRoot& root,
                                            Timestamp::Check& failed) {
    std::vector<VerifiedTime> times;
    for (const auto& bytes : bundle.timestamps) {
        const auto timestamp = Timestamp::parse(bytes);
        auto check = timestamp.verify(bundle.signature(), root);
        if (check.holds) {
            times.push_back({VerifiedTime::Source::timestamp_authority, timestamp.time()});
        } else if (!failed.root_too_old) {
            failed = std::move(check);
        }
    }
    return times;
}

[[noreturn]] void no_time(const Timestamp::Check& failed, const TrustedRoot& root) {
    if (failed.root_too_old) {
        throw Refusal(
            Reason::root_too_old,
            "nothing proves to " + root.description() + " when it was signed: " + failed.why,
            newer_root_hint(root));
    }
    throw Refusal(Reason::invalid, "nothing proves when it was signed" +
                                       (failed.why.empty() ? "" : ": " + failed.why));
}

std::vector<VerifiedTime> verify_times(const Bundle& bundle, const TransparencyLog& log,
                                       const TrustedRoot& root) {
    if (!bundle.timestamps.empty() && root.timestamp_authorities.empty()) {
        throw Refusal(Reason::root_too_old,
                      root.description() + " has no authority for its timestamps",
                      newer_root_hint(root));
    }
    Timestamp::Check failed;
    auto times = verify_timestamps(bundle, root, failed);
    if (const auto promised = verify_promise(bundle.entry, log, root)) {
        times.push_back({VerifiedTime::Source::log, *promised});
    }
    if (times.empty()) {
        no_time(failed, root);
    }
    for (const auto& [source, time] : times) {
        expect_valid_log(log, time, root);
    }
    return times;
}

[[noreturn]] void other_entry(const char* what) {
    throw Refusal(Reason::invalid,
                  std::string("its log entry is of another ") + what + " than the bundle's");
}

void expect_same_signature(const LogBody& body, const Bundle& bundle, const Material& material) {
    if (body.signatures.size() != 1 || body.signatures[0].signature != bundle.signature()) {
        other_entry("signature");
    }
    const auto& logged = body.signatures[0];
    if (logged.certificate != material.certificate || logged.verifier != material.verifier) {
        other_entry("signer");
    }
    if (!logged.key_details.empty() && logged.key_details != material.key.details()) {
        other_entry("kind of key");
    }
}

// Uses the hash that the log recorded; the bundle's own must not differ.
void verify_message(const MessageSignature& message, const LogBody& body, const Bundle& bundle,
                    const Artifact& artifact, const Material& material) {
    if (bundle.entry.kind != "hashedrekord") {
        other_entry("kind of signature");
    }
    const auto& digest = body.digest;
    if (digest.bytes != artifact.hash(digest.algorithm) ||
        (message.digest && message.digest->bytes != artifact.hash(message.digest->algorithm))) {
        throw Refusal(Reason::content_differs, "its hash is not the one that was signed");
    }
    const bool ed25519 = material.key.kind() == KeyKind::ed25519;
    if (!(ed25519 ? material.key.verify(digest.algorithm, artifact.bytes(), message.signature)
                  : material.key.verify(digest, message.signature))) {
        throw Refusal(Reason::invalid, "it is not what that key signed");
    }
}

void verify_envelope(const Envelope& envelope, const LogBody& body, const Bundle& bundle,
                     const Artifact& artifact, const Material& material) {
    const auto encoded = pre_authentication_encoding(envelope);
    // Rekor v2 records the signed bytes as if they were a file; the others record the payload.
    if (bundle.entry.kind == "hashedrekord" && bundle.entry.version != "0.0.2") {
        other_entry("kind of signature");
    }
    const auto& logged = bundle.entry.kind == "hashedrekord" ? encoded : envelope.payload;
    if (body.digest.bytes != hash(body.digest.algorithm, logged)) {
        other_entry("content");
    }
    // Signers of DSSE have used SHA-256 with every curve; the registry requires the curve's own
    // hash.
    const auto usual = material.key.usual_hash();
    if (!material.key.verify(usual, encoded, envelope.signature) &&
        (usual == HashAlgorithm::sha256 ||
         !material.key.verify(HashAlgorithm::sha256, encoded, envelope.signature))) {
        throw Refusal(Reason::invalid, "it is not what that key signed");
    }
    expect_subject(envelope, [&](HashAlgorithm algorithm) { return artifact.hash(algorithm); });
}

void verify_content(const Bundle& bundle, const Artifact& artifact, const Material& material) {
    const auto body = parse_log_body(bundle.entry);
    expect_same_signature(body, bundle, material);
    if (const auto* message = std::get_if<MessageSignature>(&bundle.content)) {
        verify_message(*message, body, bundle, artifact, material);
    } else {
        verify_envelope(std::get<Envelope>(bundle.content), body, bundle, artifact, material);
    }
}

Certificate read_certificate(std::string_view der) {
    const auto certificate = Certificate::parse(der);
    if (!certificate) {
        throw Refusal(Reason::malformed, "it has something that is no certificate");
    }
    return *certificate;
}

// Checks the format's rule for certificates beside the signer's: no self-signed authority. None of
// them is used.
void check_other_certificates(const Bundle& bundle) {
    for (const auto& der : bundle.other_certificates) {
        const auto certificate = read_certificate(der);
        if (certificate.is_authority() && certificate.is_self_issued()) {
            throw Refusal(Reason::malformed, "it brings a root certificate of its own");
        }
    }
}

Verified result_of(const Bundle& bundle, const TransparencyLog& log,
                   std::vector<VerifiedTime> times) {
    return {std::nullopt, std::move(times), log.url, bundle.entry.log_index};
}

std::string listed(const std::vector<std::string>& identities) {
    std::string text;
    for (const auto& identity : identities) {
        text += (text.empty() ? "" : ", ") + base::printable(identity);
    }
    return text.empty() ? "nobody" : text;
}

}  // namespace

Policy signed_by(std::string identity, std::string issuer) {
    return [identity = std::move(identity), issuer = std::move(issuer)](const Signer& signer) {
        const auto& all = signer.identities;
        if (std::find(all.begin(), all.end(), identity) == all.end()) {
            throw Refusal(Reason::signed_by_other,
                          "signed by " + listed(all) + ", not by " + identity);
        }
        if (signer.issuer.empty() || signer.issuer != issuer) {
            throw Refusal(Reason::signed_by_other, "the identity is vouched for by " +
                                                       base::printable(signer.issuer) +
                                                       ", not by " + issuer);
        }
    };
}

Verified verify(const Bundle& bundle, const Artifact& artifact, const TrustedRoot& root,
                const Policy& policy) {
    if (bundle.certificate.empty()) {
        throw Refusal(Reason::signed_by_other, "it is signed with a key, and names no identity",
                      "give the key (--key) if it is yours to trust");
    }
    check_other_certificates(bundle);
    const auto leaf = read_certificate(bundle.certificate);
    const auto key = PublicKey::from_spki(leaf.spki());
    if (!key) {
        throw Refusal(Reason::unsupported, "its certificate has a key of another kind");
    }
    const auto& log = find_log(bundle.entry, root);
    auto times = verify_times(bundle, log, root);
    std::string issuer;
    for (const auto& [source, time] : times) {
        issuer = verify_chain(leaf, root, time);
    }
    verify_certificate_timestamps(leaf, issuer, root);
    verify_inclusion(bundle.entry, log);
    verify_content(bundle, artifact, {*key, bundle.certificate, true});
    auto result = result_of(bundle, log, std::move(times));
    result.signer = read_signer(leaf);
    policy(*result.signer);
    return result;
}

Verified verify_with_key(const Bundle& bundle, const Artifact& artifact, const TrustedRoot& root,
                         const PublicKey& key) {
    if (!bundle.certificate.empty()) {
        throw Refusal(Reason::signed_by_other,
                      "it is signed with a certificate, and not with that key");
    }
    const auto& log = find_log(bundle.entry, root);
    auto times = verify_times(bundle, log, root);
    verify_inclusion(bundle.entry, log);
    verify_content(bundle, artifact, {key, key.spki(), false});
    return result_of(bundle, log, std::move(times));
}

}  // namespace twinkle::sigstore
