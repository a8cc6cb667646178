#include "instance.h"

#include "base/base64.h"
#include "log_tree.h"
#include "sigstore/dsse.h"
#include "sigstore/hash.h"
#include "sigstore/public_key.h"
#include "timestamping.h"

namespace twinkle::test {
namespace {

using namespace sigstore;
using base::to_base64;
using base::to_hex;

constexpr const char* start = "2026-01-01T00:00:00Z";
constexpr const char* end = "2036-01-01T00:00:00Z";
constexpr const char* rekor1_origin = "rekor.test - 1234567890";
constexpr const char* rekor2_origin = "log2026.rekor.test";
constexpr std::uint64_t leaves = 11;  // in the tree that contains an entry …
constexpr std::uint64_t place = 6;    // … this one

std::string sha256(std::string_view bytes) {
    return hash(HashAlgorithm::sha256, bytes);
}

std::string number(std::uint64_t value, int octets) {
    std::string bytes;
    for (int shift = 8 * (octets - 1); shift >= 0; shift -= 8) {
        bytes += static_cast<char>(value >> shift & 0xff);
    }
    return bytes;
}

bool is_v2(const SignatureSpec& spec) {
    return spec.log == SignatureSpec::Log::v2 || spec.log == SignatureSpec::Log::v2_dsse;
}

CertificateSpec authority_spec(const std::string& name, const std::string& usage) {
    return {.name = name,
            .from = at(start),
            .to = at(end),
            .authority = true,
            .extended_key_usage = usage};
}

Json instance_of(const SigningKey& key, const char* details, const std::string& id,
                 const std::string& url, const std::string& from, const std::string& until) {
    Json valid{{"start", from}};
    if (!until.empty()) {
        valid["end"] = until;
    }
    return {{"baseUrl", url},
            {"hashAlgorithm", "SHA2_256"},
            {"publicKey",
             {{"rawBytes", to_base64(key.spki())}, {"keyDetails", details}, {"validFor", valid}}},
            {"logId", {{"keyId", to_base64(id)}}}};
}

Json authority_of(const std::vector<const MadeCertificate*>& chain, const std::string& name,
                  const std::string& from, const std::string& until) {
    Json certificates = Json::array();
    for (const auto* certificate : chain) {
        certificates.push_back({{"rawBytes", to_base64(certificate->der())}});
    }
    Json valid{{"start", from}};
    if (!until.empty()) {
        valid["end"] = until;
    }
    return {{"subject", {{"organization", "test"}, {"commonName", name}}},
            {"uri", "https://" + name + ".test"},
            {"certChain", {{"certificates", certificates}}},
            {"validFor", valid}};
}

// A timestamp of a certificate log in the certificate (RFC 6962, 3.2 and 3.3).
void add_to_log(MadeCertificate& leaf, const SignerSpec& spec, Time time,
                const MadeCertificate& issuer, const SigningKey& issuer_key,
                const SigningKey& log) {
    const auto milliseconds = static_cast<std::uint64_t>(to_seconds(time)) * 1000 + 123;
    auto part = leaf.signed_part();
    if (spec.log_wrong) {
        part.back() = static_cast<char>(part.back() ^ 1);
    }
    const std::string head = number(milliseconds, 8);
    const std::string extensions = number(spec.log_extensions.size(), 2) + spec.log_extensions;
    const auto signature = log.sign(number(0, 2) + head + number(1, 2) + sha256(issuer.spki()) +
                                    number(part.size(), 3) + part + extensions);
    const std::string timestamp = number(0, 1) + sha256(log.spki()) + head + extensions +
                                  "\x04\x03" + number(signature.size(), 2) + signature;
    const std::string counted = number(timestamp.size(), 2) + timestamp;
    leaf.add({"1.3.6.1.4.1.11129.2.4.2", der_octets(number(counted.size(), 2) + counted)},
             issuer_key);
}

}  // namespace

struct Instance::Signed {
    std::string artifact, signature, content;  // content: the payload of an envelope
    std::string verifier_der, verifier_pem, key_details, pae;
    bool certificate = true;
};

std::string statement_over(std::string_view artifact) {
    return Json{
        {"_type", "https://in-toto.io/Statement/v1"},
        {"subject", Json::array({Json{{"name", "artifact"},
                                      {"digest", {{"sha256", to_hex(sha256(artifact))}}}}})},
        {"predicateType", "https://example.org/test"},
        {"predicate", Json::object()}}
        .dump();
}

Instance::Instance()
    : authority_key_(SigningKey::make("P-384")),
      between_key_(SigningKey::make("P-256")),
      certificate_log_(SigningKey::make("P-256")),
      rekor1_(SigningKey::make("P-256")),
      rekor2_(SigningKey::make("ED25519")),
      stamp_root_key_(SigningKey::make("P-256")),
      stamp_key_(SigningKey::make("P-256")),
      managed_(SigningKey::make("P-256")),
      foreign_key_(SigningKey::make("P-256")) {
    authority_ = MadeCertificate::make(authority_spec("ca-root", ""), authority_key_, nullptr,
                                       authority_key_);
    between_ = MadeCertificate::make(authority_spec("ca-between", "codeSigning"), between_key_,
                                     &*authority_, authority_key_);
    stamp_root_ = MadeCertificate::make(authority_spec("stamp-root", ""), stamp_root_key_, nullptr,
                                        stamp_root_key_);
    const CertificateSpec stamp{.name = "stamp",
                                .from = at(start),
                                .to = at(end),
                                .extended_key_usage = "critical,timeStamping"};
    stamp_ = MadeCertificate::make(stamp, stamp_key_, &*stamp_root_, stamp_root_key_);
    foreign_root_ = MadeCertificate::make(authority_spec("stamp-root", ""), foreign_key_, nullptr,
                                          foreign_key_);
    foreign_stamp_ = MadeCertificate::make(stamp, foreign_key_, &*foreign_root_, foreign_key_);
    rekor2_id_ = sha256(std::string(rekor2_origin) + "\n\x01" + rekor2_.raw_public());
}

std::string Instance::trusted_root(const RootSpec& spec) const {
    Json root{{"mediaType", "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}};
    root["tlogs"] =
        Json::array({instance_of(rekor1_, "PKIX_ECDSA_P256_SHA_256", sha256(rekor1_.spki()),
                                 "https://rekor.test", spec.start, spec.end),
                     instance_of(rekor2_, "PKIX_ED25519", rekor2_id_,
                                 std::string("https://") + rekor2_origin, spec.start, spec.end)});
    root["ctlogs"] = Json::array(
        {instance_of(certificate_log_, "PKIX_ECDSA_P256_SHA_256", sha256(certificate_log_.spki()),
                     "https://ct.test", spec.start, spec.certificate_log_end)});
    root["certificateAuthorities"] = Json::array(
        {authority_of({&*between_, &*authority_}, "ca", spec.start, spec.authority_end)});
    root["timestampAuthorities"] = Json::array(
        {authority_of({&*stamp_, &*stamp_root_}, "stamp", spec.start, spec.timestamp_end)});
    if (spec.edit) {
        spec.edit(root);
    }
    return base::dump_json(root);
}

MadeCertificate Instance::issue(const SignatureSpec& spec, const SigningKey& key) const {
    const auto& signer = spec.signer;
    CertificateSpec certificate{.name = signer.authority ? "signer" : "",
                                .from = signer.from.value_or(spec.time - std::chrono::minutes(5)),
                                .to = signer.to.value_or(spec.time + std::chrono::minutes(5)),
                                .authority = signer.authority,
                                .key_usage = signer.key_usage,
                                .extended_key_usage = signer.extended_key_usage,
                                .subject_names = signer.names,
                                .extensions = {}};
    const std::string arc = "1.3.6.1.4.1.57264.1.";
    const auto add = [&](const char* last, const std::string& value, bool der) {
        if (!value.empty()) {
            certificate.extensions.push_back({arc + last, der ? der_utf8(value) : value});
        }
    };
    add("1", signer.issuer, false);
    add("8", signer.other_issuer.value_or(signer.issuer), true);
    add("9", signer.build_signer, true);
    add("12", signer.source_repository, true);
    certificate.extensions.insert(certificate.extensions.end(), signer.extensions.begin(),
                                  signer.extensions.end());
    auto made = MadeCertificate::make(certificate, key, &*between_, between_key_);
    if (signer.logged) {
        add_to_log(made, signer, signer.logged_at.value_or(certificate.from), *between_,
                   between_key_, certificate_log_);
    }
    return made;
}

Json Instance::log_body(const SignatureSpec& spec, const Signed& made) const {
    using Log = SignatureSpec::Log;
    const auto algorithm = hash_from_name(spec.log_hash).value();
    const auto proto = "SHA2_" + spec.log_hash.substr(3);
    const auto digest = [&](const std::string& bytes) { return hash(algorithm, bytes); };
    const auto v1_hash = [&](const std::string& bytes) {
        return Json{{"algorithm", spec.log_hash}, {"value", to_hex(digest(bytes))}};
    };
    const auto signature = to_base64(made.signature);
    const auto pem = to_base64(made.verifier_pem);
    const Json v2_signature{{"content", signature},
                            {"verifier",
                             {{"keyDetails", made.key_details},
                              {made.certificate ? "x509Certificate" : "publicKey",
                               {{"rawBytes", to_base64(made.verifier_der)}}}}}};
    if (spec.log == Log::v2) {
        const auto& logged = spec.dsse ? made.pae : made.artifact;
        return {{"kind", "hashedrekord"},
                {"apiVersion", "0.0.2"},
                {"spec",
                 {{"hashedRekordV002",
                   {{"data", {{"algorithm", proto}, {"digest", to_base64(digest(logged))}}},
                    {"signature", v2_signature}}}}}};
    }
    if (spec.log == Log::v2_dsse) {
        return {{"kind", "dsse"},
                {"apiVersion", "0.0.2"},
                {"spec",
                 {{"dsseV002",
                   {{"payloadHash",
                     {{"algorithm", proto}, {"digest", to_base64(digest(made.content))}}},
                    {"signatures", Json::array({v2_signature})}}}}}};
    }
    if (spec.log == Log::v1_intoto) {
        return {{"kind", "intoto"},
                {"apiVersion", "0.0.2"},
                {"spec",
                 {{"content",
                   {{"envelope",
                     {{"payloadType", spec.payload_type},
                      {"signatures",
                       Json::array({Json{{"sig", to_base64(signature)}, {"publicKey", pem}}})}}},
                    {"hash", v1_hash(made.pae)},
                    {"payloadHash", v1_hash(made.content)}}}}}};
    }
    if (spec.dsse) {
        return {
            {"kind", "dsse"},
            {"apiVersion", "0.0.1"},
            {"spec",
             {{"envelopeHash", v1_hash(made.pae)},
              {"payloadHash", v1_hash(made.content)},
              {"signatures", Json::array({Json{{"signature", signature}, {"verifier", pem}}})}}}};
    }
    return {{"kind", "hashedrekord"},
            {"apiVersion", "0.0.1"},
            {"spec",
             {{"data", {{"hash", v1_hash(made.artifact)}}},
              {"signature", {{"content", signature}, {"publicKey", {{"content", pem}}}}}}}};
}

std::string Instance::checkpoint(const SignatureSpec& spec, std::uint64_t size,
                                 const std::string& root) const {
    const bool v2 = is_v2(spec);
    std::string text = std::string(v2 ? rekor2_origin : rekor1_origin) + "\n" +
                       std::to_string(size) + "\n" + to_base64(root) + "\n";
    if (spec.edit_checkpoint) {
        spec.edit_checkpoint(text);
    }
    const auto& key = v2 ? rekor2_ : rekor1_;
    const auto id = v2 ? rekor2_id_ : sha256(rekor1_.spki());
    return text + "\n" + spec.also_signs + "\xe2\x80\x94 " + (v2 ? rekor2_origin : "rekor.test") +
           " " + to_base64(id.substr(0, 4) + key.sign(text)) + "\n";
}

Json Instance::log_entry(const SignatureSpec& spec, const Signed& made) const {
    auto body = log_body(spec, made);
    if (spec.edit_body) {
        spec.edit_body(body);
    }
    const std::string leaf = body.dump();
    std::vector<std::string> entries;
    for (std::uint64_t i = 0; i < leaves; ++i) {
        entries.push_back(i == place ? leaf : "entry " + std::to_string(i));
    }
    const auto root = tree_hash(entries, 0, leaves);
    Json hashes = Json::array();
    for (const auto& one : audit_path(entries, place, 0, leaves)) {
        hashes.push_back(to_base64(one));
    }
    const bool v2 = is_v2(spec);
    const auto id = v2 ? rekor2_id_ : sha256(rekor1_.spki());
    const std::uint64_t index = v2 ? place : 1000 + place;
    Json entry{{"logIndex", std::to_string(index)},
               {"logId", {{"keyId", to_base64(id)}}},
               {"kindVersion", {{"kind", body["kind"]}, {"version", body["apiVersion"]}}},
               {"inclusionProof",
                {{"logIndex", std::to_string(place)},
                 {"rootHash", to_base64(root)},
                 {"treeSize", std::to_string(leaves)},
                 {"hashes", hashes},
                 {"checkpoint", {{"envelope", checkpoint(spec, leaves, root)}}}}},
               {"canonicalizedBody", to_base64(leaf)}};
    if (!v2 && spec.promise) {
        const auto time = std::to_string(to_seconds(spec.integrated_time.value_or(spec.time)));
        const auto text = "{\"body\":\"" + to_base64(leaf) + "\",\"integratedTime\":" + time +
                          ",\"logID\":\"" + to_hex(id) +
                          "\",\"logIndex\":" + std::to_string(index) + "}";
        entry["integratedTime"] = time;
        entry["inclusionPromise"] = {{"signedEntryTimestamp", to_base64(rekor1_.sign(text))}};
    }
    return entry;
}

std::string Instance::timestamp(const SignatureSpec& spec, const std::string& signature) const {
    return make_timestamp(
        spec.timestamped.value_or(signature), spec.timestamp_time.value_or(spec.time),
        spec.foreign_timestamp ? *foreign_stamp_ : *stamp_,
        spec.foreign_timestamp ? foreign_key_ : stamp_key_, spec.embed_certificate);
}

std::string Instance::sign(std::string_view artifact, const SignatureSpec& spec) const {
    const SigningKey key = spec.with_key ? managed_ : SigningKey::make(spec.signer.key);
    Signed made;
    made.artifact = artifact;
    made.certificate = !spec.with_key;
    made.content = spec.statement.empty() ? statement_over(artifact) : spec.statement;
    made.pae = pre_authentication_encoding({spec.payload_type, made.content, ""});
    made.signature = key.sign(spec.dsse ? made.pae : made.artifact, spec.hash);
    made.key_details = PublicKey::from_spki(key.spki()).value().details();
    Json material;
    if (spec.with_key) {
        made.verifier_der = key.spki();
        made.verifier_pem = key.pem();
        material["publicKey"] = {{"hint", "test"}};
    } else {
        const auto leaf = issue(spec, key);
        made.verifier_der = leaf.der();
        made.verifier_pem = leaf.pem();
        const Json certificate{{"rawBytes", to_base64(leaf.der())}};
        if (spec.version == "0.3") {
            material["certificate"] = certificate;
        } else {
            material["x509CertificateChain"] = {{"certificates", Json::array({certificate})}};
        }
    }
    material["tlogEntries"] = Json::array({log_entry(spec, made)});
    if ((spec.timestamp || is_v2(spec)) && !spec.no_timestamp) {
        material["timestampVerificationData"] = {
            {"rfc3161Timestamps",
             Json::array({Json{{"signedTimestamp", to_base64(timestamp(spec, made.signature))}}})}};
    }
    Json bundle{
        {"mediaType", spec.version == "0.3"
                          ? "application/vnd.dev.sigstore.bundle.v0.3+json"
                          : "application/vnd.dev.sigstore.bundle+json;version=" + spec.version},
        {"verificationMaterial", material}};
    const auto signature = to_base64(made.signature);
    if (spec.dsse) {
        bundle["dsseEnvelope"] = {{"payload", to_base64(made.content)},
                                  {"payloadType", spec.payload_type},
                                  {"signatures", Json::array({Json{{"sig", signature}}})}};
    } else {
        bundle["messageSignature"] = {
            {"messageDigest", {{"algorithm", "SHA2_256"}, {"digest", to_base64(sha256(artifact))}}},
            {"signature", signature}};
    }
    if (spec.edit_bundle) {
        spec.edit_bundle(bundle);
    }
    return bundle.dump();
}

}  // namespace twinkle::test
