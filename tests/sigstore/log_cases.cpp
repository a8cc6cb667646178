// Mistakes in a log's entry.
#include "base/base64.h"
#include "case_maker.h"

namespace twinkle::test {
namespace {

using sigstore::Reason;
using Log = SignatureSpec::Log;

void add_log(Cases& cases) {
    const SignatureSpec v1;
    const SignatureSpec v2{.log = Log::v2};
    for (const auto* spec : {&v1, &v2}) {
        const std::string name = spec == &v1 ? "v1-" : "v2-";
        cases.edit(name + "signature-flipped", Reason::invalid, *spec,
                   flip("messageSignature/signature"));
        cases.edit(name + "proof-hash-flipped", Reason::invalid, *spec,
                   flip(proof_place + "/hashes/1"));
        cases.edit(name + "proof-root-flipped", Reason::invalid, *spec,
                   flip(proof_place + "/rootHash"));
        cases.edit(name + "proof-too-short", Reason::invalid, *spec,
                   [](Json& bundle) { place(bundle, proof_place + "/hashes").erase(0); });
        cases.edit(name + "proof-too-long", Reason::invalid, *spec, [](Json& bundle) {
            place(bundle, proof_place + "/hashes")
                .push_back(place(bundle, proof_place + "/hashes/0"));
        });
        cases.edit(name + "proof-index", Reason::invalid, *spec,
                   set(proof_place + "/logIndex", "5"));
        cases.edit(name + "proof-index-outside", Reason::malformed, *spec,
                   set(proof_place + "/logIndex", "11"));
        cases.edit(name + "no-proof", Reason::malformed, *spec,
                   remove(entry_place, "inclusionProof"));
        cases.edit(name + "no-checkpoint", Reason::malformed, *spec,
                   remove(proof_place, "checkpoint"));
        cases.edit(name + "no-entry", Reason::malformed, *spec,
                   set("verificationMaterial/tlogEntries", Json::array()));
        cases.edit(name + "two-entries", Reason::malformed, *spec, [](Json& bundle) {
            auto& all = place(bundle, "verificationMaterial/tlogEntries");
            all.push_back(all[0]);
        });
        auto& unknown = cases.edit(name + "unknown-log", Reason::root_too_old, *spec,
                                   flip(entry_place + "/logId/keyId"));
        unknown.reference_differs =
            spec == &v2 ? "it tries the keys of all logs where it does not know the log" : "";
        cases.edit(name + "body-flipped", Reason::invalid, *spec,
                   flip(entry_place + "/canonicalizedBody"));
        cases.edit(name + "unknown-kind", Reason::unsupported, *spec,
                   set(entry_place + "/kindVersion/version", "0.0.3"));
        cases.edit(name + "other-kind", Reason::malformed, *spec,
                   set(entry_place + "/kindVersion/kind", "dsse"));
        auto changed = *spec;
        changed.edit_checkpoint = [](std::string& text) {
            text.replace(text.find("\n11\n"), 4, "\n12\n");
        };
        cases.add(name + "checkpoint-other-size", Reason::invalid, changed).reference_differs =
            "it compares the root hash only";
        changed.edit_checkpoint = [](std::string& text) {
            const auto at_hash = text.find("\n11\n") + 4;
            text[at_hash] = text[at_hash] == 'A' ? 'B' : 'A';
        };
        cases.add(name + "checkpoint-other-root", Reason::invalid, changed);
        changed.edit_checkpoint = [](std::string& text) {
            text = text.substr(text.find('\n') + 1);
        };
        cases.add(name + "checkpoint-no-origin", Reason::malformed, changed);
        cases.edit(name + "checkpoint-flipped", Reason::invalid, *spec, [](Json& bundle) {
            auto text = place(bundle, proof_place + "/checkpoint/envelope").get<std::string>();
            auto signature = base::from_base64(text.substr(text.rfind(' ') + 1,
                                                           text.size() - text.rfind(' ') - 2))
                                 .value();
            signature.back() = static_cast<char>(signature.back() ^ 1);
            place(bundle, proof_place + "/checkpoint/envelope") =
                text.substr(0, text.rfind(' ') + 1) + base::to_base64(signature) + "\n";
        });
        cases.edit(name + "checkpoint-unsigned", Reason::malformed, *spec, [](Json& bundle) {
            auto text = place(bundle, proof_place + "/checkpoint/envelope").get<std::string>();
            place(bundle, proof_place + "/checkpoint/envelope") =
                text.substr(0, text.find("\n\n") + 2);
        });
        cases.edit(name + "digest-of-other", Reason::content_differs, *spec,
                   flip("messageSignature/messageDigest/digest"));
        cases.add(name + "other-artifact", Reason::content_differs, *spec).artifact += "x";
    }
    cases.edit("promise-flipped", Reason::invalid, v1,
               flip(entry_place + "/inclusionPromise/signedEntryTimestamp"));
    cases.edit("promise-other-time", Reason::invalid, v1,
               set(entry_place + "/integratedTime", "1772366401"));
    cases.edit("promise-of-the-last-day", Reason::invalid, v1,
               set(entry_place + "/integratedTime", "253402300799"));
    for (const char* time :
         {"253402300800", "9223372036854775807", "18446744073709551616", "-1", "1e30"}) {
        cases.edit(std::string("promise-no-time-") + time, Reason::malformed, v1,
                   set(entry_place + "/integratedTime", time));
    }
    cases.edit("promise-other-index", Reason::invalid, v1, set(entry_place + "/logIndex", "1005"));
    cases.edit("0.1-without-promise", Reason::malformed, {.version = "0.1", .timestamp = true},
               remove(entry_place, "inclusionPromise"));
    cases.edit("v2-other-index", Reason::invalid, v2, set(entry_place + "/logIndex", "5"))
        .reference_differs = "it does not look at that number";
}

void add_bodies(Cases& cases) {
    const auto body = [&](const char* name, Reason reason, SignatureSpec spec,
                          const std::string& path, const Json& value) -> SignatureCase& {
        spec.edit_body = [=](Json& made) { made[Json::json_pointer(path)] = value; };
        return cases.add(name, reason, spec);
    };
    const std::string zeros(64, '0');
    const std::string other = base::to_base64(SigningKey::make("P-256").sign("x"));
    const std::string pem = base::to_base64(SigningKey::make("P-256").pem());
    body("entry-of-other-artifact", Reason::content_differs, {}, "/spec/data/hash/value", zeros);
    body("entry-of-other-signature", Reason::invalid, {}, "/spec/signature/content", other);
    body("entry-of-other-key", Reason::invalid, {}, "/spec/signature/publicKey/content", pem);
    body("entry-without-data", Reason::malformed, {}, "/spec/data", nullptr);
    const SignatureSpec v2{.log = Log::v2};
    const std::string record = "/spec/hashedRekordV002";
    body("v2-entry-of-other-artifact", Reason::content_differs, v2, record + "/data/digest",
         base::to_base64(std::string(32, '\0')));
    body("v2-entry-of-other-signature", Reason::invalid, v2, record + "/signature/content", other);
    body("v2-entry-of-other-kind-of-key", Reason::invalid, v2,
         record + "/signature/verifier/keyDetails", "PKIX_ECDSA_P384_SHA_384");
    body("v2-entry-without-kind-of-key", Reason::malformed, v2,
         record + "/signature/verifier/keyDetails", "");
    const SignatureSpec dsse{.dsse = true};
    body("dsse-entry-of-other-payload", Reason::invalid, dsse, "/spec/payloadHash/value", zeros);
    body("dsse-entry-of-other-signature", Reason::invalid, dsse, "/spec/signatures/0/signature",
         other);
    body("dsse-entry-without-signature", Reason::invalid, dsse, "/spec/signatures", Json::array());
    body("intoto-entry-of-other-payload", Reason::invalid, {.dsse = true, .log = Log::v1_intoto},
         "/spec/content/payloadHash/value", zeros);
}

}  // namespace

void add_log_cases(Cases& cases) {
    add_log(cases);
    add_bodies(cases);
}

}  // namespace twinkle::test
