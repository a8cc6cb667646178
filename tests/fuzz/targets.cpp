#include "targets.h"

#include <algorithm>
#include <set>

#include "instance.h"
#include "sigstore/chain.h"
#include "sigstore/checkpoint.h"
#include "sigstore/merkle.h"
#include "sigstore/refusal.h"
#include "sigstore/sct.h"
#include "sigstore/timestamp.h"
#include "sigstore/verify.h"
#include "world.h"

namespace twinkle::fuzz {
namespace {

using namespace sigstore;

// True if it is accepted. An exception must be an Error of the two kinds that a caller is told
// about: anything else ends the program, and is a finding.
template <typename Function>
bool accepted(Function&& function) {
    try {
        function();
        return true;
    } catch (const Error& error) {
        if (error.code() != ErrorCode::malformed && error.code() != ErrorCode::verification) {
            wrong("an error of another kind");
        }
        return false;
    }
}

Policy usual_signer() {
    return signed_by(test::default_identity, test::default_issuer);
}

const Time signed_at = test::at("2026-03-01T12:00:00Z");

// The texts that the logs of this instance have signed.
const std::set<std::string>& signed_texts() {
    static const std::set<std::string> texts = [] {
        std::set<std::string> all;
        for (const auto& seed : world().seeds.at("checkpoint")) {
            all.insert(parse_checkpoint(seed).signed_text);
        }
        return all;
    }();
    return texts;
}

}  // namespace

void fuzz_bundle(std::string_view input) {
    Bundle bundle;
    if (!accepted([&] { bundle = parse_bundle(input, "input"); })) {
        return;
    }
    const auto& root = world().root;
    if (accepted([&] { verify(bundle, ArtifactBytes(other_artifact), root, usual_signer()); })) {
        wrong("another artifact");
    }
    const auto stranger = signed_by("https://example.org/stranger", test::default_issuer);
    if (accepted([&] { verify(bundle, ArtifactBytes(artifact), root, stranger); })) {
        wrong("another signer");
    }
    accepted([&] { verify(bundle, ArtifactBytes(artifact), root, usual_signer()); });
    static const auto key = PublicKey::from_spki(test::SigningKey::make("P-256").spki()).value();
    if (accepted([&] { verify_with_key(bundle, ArtifactBytes(artifact), root, key); })) {
        wrong("a key that signed nothing");
    }
}

void fuzz_certificate(std::string_view input) {
    accepted([&] { parse_timestamp_list(input); });
    const auto certificate = Certificate::parse(input);
    if (!certificate) {
        return;
    }
    certificate->validity();
    PublicKey::from_spki(certificate->spki());
    Signer signer;
    const bool readable = accepted([&] { signer = read_signer(*certificate); });
    std::string issuer;
    const auto& root = world().root;
    const bool vouched = accepted([&] { issuer = verify_chain(*certificate, root, signed_at); });
    accepted([&] { verify_certificate_timestamps(*certificate, issuer, root); });
    if (vouched && readable &&
        (signer.identities != std::vector<std::string>{test::default_identity} ||
         signer.issuer != test::default_issuer)) {
        wrong("a certificate that nobody issued");
    }
}

void fuzz_checkpoint(std::string_view input) {
    Checkpoint checkpoint;
    if (!accepted([&] { checkpoint = parse_checkpoint(input); })) {
        return;
    }
    root_of_path(input, checkpoint.size / 2, checkpoint.size, {checkpoint.root_hash});
    for (const auto& log : world().root.signature_logs) {
        for (const auto& id : log.ids) {
            if (accepted([&] { verify_checkpoint(checkpoint, log, id); }) &&
                !signed_texts().contains(checkpoint.signed_text)) {
                wrong("a checkpoint that no log signed");
            }
        }
    }
}

void fuzz_timestamp(std::string_view input) {
    std::optional<Timestamp> timestamp;
    if (!accepted([&] { timestamp = Timestamp::parse(input); })) {
        return;
    }
    if (timestamp->verify("another signature", world().root).holds) {
        wrong("a timestamp over something else");
    }
    for (const auto& json : world().seeds.at("bundle")) {
        const auto bundle = parse_bundle(json, "seed");
        if (timestamp->verify(bundle.signature(), world().root).holds &&
            timestamp->time() != signed_at) {
            wrong("a timestamp of another time");
        }
    }
}

void fuzz_trusted_root(std::string_view input) {
    TrustedRoot root;
    if (!accepted([&] { root = parse_trusted_root(input, "input"); })) {
        return;
    }
    root.description();
    static const auto bundle = parse_bundle(world().seeds.at("bundle").front(), "seed");
    if (accepted([&] { verify(bundle, ArtifactBytes(other_artifact), root, usual_signer()); })) {
        wrong("another artifact");
    }
    accepted([&] { verify(bundle, ArtifactBytes(artifact), root, usual_signer()); });
}

}  // namespace twinkle::fuzz
