#include "cases.h"

#include "case_maker.h"

namespace twinkle::test {
namespace {

using sigstore::Reason;
using Log = SignatureSpec::Log;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

void add_accepted(Cases& cases) {
    cases.add("message-v1", {}, {});
    cases.add("message-v1-bundle-0.1", {}, {.version = "0.1"});
    cases.add("message-v1-bundle-0.2", {}, {.version = "0.2"});
    cases.add("message-v1-timestamp", {}, {.timestamp = true});
    cases.add("message-v1-timestamp-only", {}, {.promise = false, .timestamp = true});
    cases.add("message-v1-unknown-timestamp-too", {},
              {.timestamp = true, .foreign_timestamp = true});
    cases.add("message-v2", {}, {.log = Log::v2});
    cases.add("message-v2-embedded-certificate", {}, {.log = Log::v2, .embed_certificate = true});
    cases.add("dsse-v1", {}, {.dsse = true});
    cases.add("dsse-v2-as-file", {}, {.dsse = true, .log = Log::v2});
    cases.add("dsse-v2", {}, {.dsse = true, .log = Log::v2_dsse}).reference_differs =
        "it takes no dsse entry of Rekor v2";
    cases.add("dsse-intoto", {}, {.dsse = true, .log = Log::v1_intoto}).reference_differs =
        "it takes no intoto entry";
    cases.add("witnesses", {},
              {.log = Log::v2, .also_signs = "\xe2\x80\x94 witness.test AAECAwQFBgcICQ==\n"});
    cases.edit("no-message-digest", {}, {}, remove("messageSignature", "messageDigest"));
    cases.edit("old-media-type-0.3", {}, {},
               set("mediaType", "application/vnd.dev.sigstore.bundle+json;version=0.3"));
    SignatureSpec static_ct;
    static_ct.signer.log_extensions = std::string("\0\0\5\0\0\0\0\7", 8);
    cases.add("certificate-log-extensions", {}, static_ct);
    SignatureSpec later{.time = at("2199-03-01T12:00:00Z")};
    later.signer.from = later.time - minutes(5);
    later.signer.to = later.time + minutes(5);
    cases.add("far-future-that-the-log-has-signed", Reason::root_too_old, later);
    later.integrated_time = at("2026-03-01T12:00:00Z");
    cases.add("far-future-of-the-certificate-alone", Reason::invalid, later);
    SignatureSpec email;
    email.signer.names = "critical,email:someone@example.org";
    cases.add("email", {}, email).identity = "someone@example.org";
    RootSpec ends;
    ends.end = "2026-03-01T12:00:00Z";
    cases.add("log-ends-right-then", {}, {}, ends);
}

void add_keys(Cases& cases) {
    cases.add("key-v1", {}, {.with_key = true}).reference_differs = "it takes no keys";
    cases.add("key-v2", {}, {.log = Log::v2, .with_key = true}).reference_differs =
        "it takes no keys";
    cases.add("key-dsse", {}, {.dsse = true, .with_key = true}).reference_differs =
        "it takes no keys";
    cases.add("key-wrong", Reason::invalid, {.with_key = true}).key =
        SigningKey::make("P-256").pem();
    auto& both = cases.add("key-for-certificate", Reason::signed_by_other, {});
    both.key = SigningKey::make("P-256").pem();
    both.reference_differs = "it takes no keys, and looks at the identity";
    cases.add("certificate-for-key", Reason::signed_by_other, {.with_key = true}).key.clear();
    for (const auto& [kind, hash, name] :
         {std::tuple{"P-384", "SHA384", "sha384"}, std::tuple{"P-521", "SHA512", "sha512"},
          std::tuple{"RSA", "SHA256", "sha256"}}) {
        SignatureSpec spec{.hash = hash, .log_hash = name};
        spec.signer.key = kind;
        cases.add(std::string("curve-") + kind, {}, spec).reference_differs =
            "it takes SHA-256 and ECDSA only";
        spec.log = Log::v2;
        cases.add(std::string("curve-v2-") + kind, {}, spec).reference_differs =
            "it takes SHA-256 and ECDSA only";
    }
    SignatureSpec small{.dsse = true, .hash = "SHA256"};
    small.signer.key = "P-384";
    cases.add("dsse-P-384-with-sha256", {}, small);
    SignatureSpec plain{.dsse = true};
    plain.signer.key = "ED25519";
    cases.add("dsse-ED25519", {}, plain).reference_differs = "it takes ECDSA only";
}

void add_who(Cases& cases) {
    cases.add("other-identity", Reason::signed_by_other, {}).identity += "x";
    cases.add("other-issuer", Reason::signed_by_other, {}).issuer = "https://example.org";
    SignatureSpec two;
    two.signer.other_issuer = "https://example.org";
    cases.add("two-issuers", Reason::invalid, two).reference_differs =
        "it looks at the older of the two extensions only";
    SignatureSpec nobody;
    nobody.signer.names.clear();
    cases.add("no-identity", Reason::invalid, nobody);
    SignatureSpec twice;
    twice.signer.extensions = {{"1.3.6.1.4.1.57264.1.9", der_utf8("a")},
                               {"1.3.6.1.4.1.57264.1.9", der_utf8("b")}};
    cases.add("extension-twice", Reason::invalid, twice);
    SignatureSpec raw;
    raw.signer.extensions = {{"1.3.6.1.4.1.57264.1.12", "https://example.org"}};
    cases.add("claim-not-der", Reason::invalid, raw).reference_differs =
        "it reads that extension only when it is asked for it";
}

void add_certificates(Cases& cases) {
    const auto with = [&](const char* name, Reason reason, auto change) -> SignatureCase& {
        SignatureSpec spec;
        change(spec.signer, spec.time);
        return cases.add(name, reason, spec);
    };
    with("certificate-expired", Reason::invalid, [](auto& signer, Time time) {
        signer.from = time - hours(2);
        signer.to = time - seconds(1);
    });
    with("certificate-from-later", Reason::invalid,
         [](auto& signer, Time time) { signer.from = time + seconds(1); });
    with("certificate-not-for-code", Reason::invalid,
         [](auto& signer, Time) { signer.extended_key_usage = "emailProtection"; });
    with("certificate-for-nothing", Reason::invalid,
         [](auto& signer, Time) { signer.extended_key_usage.clear(); });
    with("certificate-not-for-signing", Reason::invalid,
         [](auto& signer, Time) { signer.key_usage = "critical,keyAgreement"; });
    with("certificate-of-authority", Reason::invalid,
         [](auto& signer, Time) { signer.authority = true; });
    with("certificate-critical-extension", Reason::invalid,
         [](auto& signer, Time) { signer.extensions = {{"1.2.3.4.5", der_utf8("x"), true}}; });
    with("certificate-not-logged", Reason::invalid,
         [](auto& signer, Time) { signer.logged = false; });
    with("certificate-log-signs-another", Reason::invalid,
         [](auto& signer, Time) { signer.log_wrong = true; });
    cases.edit("certificate-flipped", Reason::invalid, {},
               flip_near_end("verificationMaterial/certificate/rawBytes"));
    cases.edit("certificate-cut", Reason::malformed, {}, [](Json& bundle) {
        auto& der = place(bundle, "verificationMaterial/certificate/rawBytes");
        der = der.get<std::string>().substr(0, 400);
    });
    cases.edit("chain-empty", Reason::malformed, {.version = "0.2"},
               set("verificationMaterial/x509CertificateChain/certificates", Json::array()));
}

void add_times(Cases& cases) {
    const SignatureSpec v2{.log = Log::v2};
    cases.add("no-time", Reason::invalid, {.promise = false});
    cases.add("v2-no-timestamp", Reason::invalid, {.log = Log::v2, .no_timestamp = true});
    SignatureSpec late{.integrated_time = at("2026-03-01T12:06:00Z")};
    cases.add("promise-after-certificate", Reason::invalid, late);
    SignatureSpec late_stamp = v2;
    late_stamp.timestamp_time = at("2026-03-01T12:06:00Z");
    cases.add("timestamp-after-certificate", Reason::invalid, late_stamp);
    late_stamp.log = Log::v1;
    late_stamp.timestamp = true;
    cases.add("one-of-two-times-after-certificate", Reason::invalid, late_stamp);
    SignatureSpec other = v2;
    other.timestamped = "something else";
    cases.add("timestamp-over-other", Reason::invalid, other);
    SignatureSpec foreign = v2;
    foreign.foreign_timestamp = true;
    cases.add("timestamp-by-stranger", Reason::invalid, foreign);
    foreign.embed_certificate = true;
    cases.add("timestamp-by-stranger-with-certificate", Reason::invalid, foreign);
    cases.edit("timestamp-twice", Reason::malformed, v2, [](Json& bundle) {
        place(bundle, stamps_place).push_back(place(bundle, stamps_place + "/0"));
    });
    cases.edit("timestamp-flipped", Reason::invalid, v2,
               flip_near_end(stamps_place + "/0/signedTimestamp"));
    cases.edit("timestamp-no-der", Reason::malformed, {},
               set("verificationMaterial/timestampVerificationData",
                   {{"rfc3161Timestamps", Json::array({Json{{"signedTimestamp", "AAAA"}}})}}));
    cases.edit("timestamps-33", Reason::malformed, v2, [](Json& bundle) {
        for (int i = 0; i < 32; ++i) {
            place(bundle, stamps_place).push_back(place(bundle, stamps_place + "/0"));
        }
    });
}

void add_envelopes(Cases& cases) {
    const SignatureSpec dsse{.dsse = true};
    cases.edit("dsse-signature-flipped", Reason::invalid, dsse,
               flip("dsseEnvelope/signatures/0/sig"));
    cases.edit("dsse-payload-flipped", Reason::invalid, dsse, flip("dsseEnvelope/payload"));
    cases.edit("dsse-other-type", Reason::invalid, dsse,
               set("dsseEnvelope/payloadType", "application/json"));
    cases.edit("dsse-two-signatures", Reason::malformed, dsse, [](Json& bundle) {
        auto& all = place(bundle, "dsseEnvelope/signatures");
        all.push_back(all[0]);
    });
    cases.add("dsse-other-artifact", Reason::content_differs, dsse).artifact += "x";
    SignatureSpec spec = dsse;
    spec.statement =
        "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[],"
        "\"predicateType\":\"x\",\"predicate\":{}}";
    cases.add("dsse-no-subject", Reason::content_differs, spec);
    spec.statement = "[1, 2]";
    cases.add("dsse-no-statement", Reason::unsupported, spec);
    spec.statement = "no JSON";
    cases.add("dsse-no-json", Reason::unsupported, spec);
    spec.statement.clear();
    spec.payload_type = "text/plain";
    cases.add("dsse-no-intoto", Reason::unsupported, spec);
    cases.edit("both-contents", Reason::malformed, dsse,
               set("messageSignature", {{"signature", "AAAA"}}));
    cases.edit("no-content", Reason::malformed, dsse, remove("", "dsseEnvelope"));
}

void add_forms(Cases& cases) {
    cases.edit("unknown-field", Reason::malformed, {}, set("surprise", 1));
    cases.edit("unknown-version", Reason::malformed, {},
               set("mediaType", "application/vnd.dev.sigstore.bundle.v0.9+json"));
    cases.edit("negative-index", Reason::malformed, {}, set(entry_place + "/logIndex", "-1"));
    cases.edit("index-as-number", Reason::malformed, {}, set(entry_place + "/logIndex", 1006));
    cases.edit("bad-base64", Reason::malformed, {}, set("messageSignature/signature", "A*=="));
    cases.edit("empty-signature", Reason::malformed, {}, set("messageSignature/signature", ""));
    cases.add("not-json", Reason::malformed, {}).bundle = "{\"mediaType\": ";
    cases.add("empty", Reason::malformed, {}).bundle.clear();
    cases.add("list", Reason::malformed, {}).bundle = "[]";
    cases.add("deep", Reason::malformed, {}).bundle = std::string(100000, '[');
}

void add_roots(Cases& cases) {
    const SignatureSpec v2{.log = Log::v2};
    RootSpec root;
    root.end = "2026-03-01T11:59:59Z";
    cases.add("root-log-ended", Reason::root_too_old, {}, root).reference_differs =
        "it believes a log after its end";
    cases.add("root-log-ended-v2", Reason::root_too_old, v2, root).reference_differs =
        "it believes a log after its end";
    root = {};
    root.authority_end = "2026-03-01T11:59:59Z";
    cases.add("root-authority-ended", Reason::root_too_old, {}, root).reference_differs =
        "it believes an authority after its end";
    root = {};
    root.timestamp_end = "2026-03-01T11:59:59Z";
    cases.add("root-timestamps-ended", Reason::root_too_old, v2, root);
    root = {};
    root.certificate_log_end = "2026-03-01T11:00:00Z";
    cases.add("root-certificate-log-ended", Reason::root_too_old, {}, root).reference_differs =
        "it believes a log after its end";
    const auto without = [&](const char* name, const char* key, const SignatureSpec& spec) {
        RootSpec less;
        less.edit = [key](Json& made) { made[key] = Json::array(); };
        return &cases.add(name, Reason::root_too_old, spec, less);
    };
    without("root-without-logs", "tlogs", {});
    without("root-without-authorities", "certificateAuthorities", {});
    without("root-without-certificate-logs", "ctlogs", {});
    without("root-without-timestamps", "timestampAuthorities", v2);
    cases.add("root-of-another-instance", Reason::root_too_old, {}).root =
        Instance().trusted_root();
    const auto broken = [&](const char* name, std::function<void(Json&)> edit) {
        RootSpec less;
        less.edit = std::move(edit);
        return &cases.add(name, Reason::malformed, {}, less);
    };
    broken("root-log-without-start",
           [](Json& made) { made["tlogs"][0]["publicKey"]["validFor"].erase("start"); });
    broken("root-no-certificate", [](Json& made) {
        made["certificateAuthorities"][0]["certChain"]["certificates"][0]["rawBytes"] = "AAAA";
    });
    broken("root-unknown-version",
           [](Json& made) { made["mediaType"] = "application/vnd.dev.sigstore.trustedroot.v7"; });
}

}  // namespace

std::vector<SignatureCase> signature_cases(const Instance& instance) {
    Cases cases(instance);
    add_accepted(cases);
    add_keys(cases);
    add_who(cases);
    add_certificates(cases);
    add_times(cases);
    add_log_cases(cases);
    add_envelopes(cases);
    add_forms(cases);
    add_roots(cases);
    return cases.take();
}

}  // namespace twinkle::test
