#include "sigstore/log_body.h"

#include "base/base64.h"
#include "base/json.h"
#include "sigstore/public_key.h"
#include "sigstore/refusal.h"

namespace twinkle::sigstore {
namespace {

constexpr base::JsonLimits body_limits{.bytes = 32u << 20, .depth = 64};
using base::Json;

[[noreturn]] void malformed_body(std::string_view why) {
    throw Refusal(Reason::malformed, "the body of its log entry " + std::string(why));
}

const Json& member(const Json& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end()) {
        malformed_body(std::string("has no ") + key);
    }
    return *found;
}

const std::string& text(const Json& object, const char* key) {
    const auto& value = member(object, key);
    if (!value.is_string()) {
        malformed_body(std::string("has a malformed ") + key);
    }
    return value.get_ref<const std::string&>();
}

const Json& list(const Json& object, const char* key) {
    const auto& value = member(object, key);
    if (!value.is_array()) {
        malformed_body(std::string("has a malformed ") + key);
    }
    return value;
}

std::string decode(const std::string& value) {
    auto bytes = base::from_base64(value);
    if (!bytes) {
        malformed_body("has something that is no base64");
    }
    return std::move(*bytes);
}

// {"algorithm": "sha256", "value": "<hex>"}
Digest read_digest(const Json& object) {
    const auto algorithm = hash_from_name(text(object, "algorithm"));
    auto bytes = base::from_hex(text(object, "value"));
    if (!algorithm || !bytes) {
        malformed_body("has a malformed hash");
    }
    return {*algorithm, std::move(*bytes)};
}

// {"algorithm": "SHA2_256", "digest": "<base64>"}
Digest read_v2_digest(const Json& object) {
    const auto algorithm = hash_from_proto(text(object, "algorithm"));
    if (!algorithm) {
        malformed_body("has a malformed hash");
    }
    return {*algorithm, decode(text(object, "digest"))};
}

// Base64 of the PEM of a certificate or key.
void read_pem(const std::string& value, LoggedSignature& result) {
    const auto pem = decode(value);
    auto der = pem_block(pem, "CERTIFICATE");
    result.certificate = der.has_value();
    if (!der) {
        der = pem_block(pem, "PUBLIC KEY");
    }
    if (!der) {
        malformed_body("has neither certificate nor key");
    }
    result.verifier = std::move(*der);
}

LogBody read_hashedrekord(const Json& spec) {
    LogBody body{read_digest(member(member(spec, "data"), "hash")), {}};
    const auto& signature = member(spec, "signature");
    LoggedSignature logged;
    logged.signature = decode(text(signature, "content"));
    read_pem(text(member(signature, "publicKey"), "content"), logged);
    body.signatures.push_back(std::move(logged));
    return body;
}

LogBody read_dsse(const Json& spec) {
    LogBody body{read_digest(member(spec, "payloadHash")), {}};
    for (const auto& signature : list(spec, "signatures")) {
        LoggedSignature logged;
        logged.signature = decode(text(signature, "signature"));
        read_pem(text(signature, "verifier"), logged);
        body.signatures.push_back(std::move(logged));
    }
    return body;
}

// The signature is encoded twice: it was base64 in the envelope already.
LogBody read_intoto(const Json& spec) {
    const auto& content = member(spec, "content");
    LogBody body{read_digest(member(content, "payloadHash")), {}};
    for (const auto& signature : list(member(content, "envelope"), "signatures")) {
        LoggedSignature logged;
        logged.signature = decode(decode(text(signature, "sig")));
        read_pem(text(signature, "publicKey"), logged);
        body.signatures.push_back(std::move(logged));
    }
    return body;
}

LoggedSignature read_v2_signature(const Json& signature) {
    LoggedSignature logged;
    logged.signature = decode(text(signature, "content"));
    const auto& verifier = member(signature, "verifier");
    logged.key_details = text(verifier, "keyDetails");
    if (logged.key_details.empty()) {
        malformed_body("does not say of what kind the key is");
    }
    logged.certificate = verifier.contains("x509Certificate");
    if (logged.certificate && verifier.contains("publicKey")) {
        malformed_body("has both certificate and key");
    }
    logged.verifier = decode(
        text(member(verifier, logged.certificate ? "x509Certificate" : "publicKey"), "rawBytes"));
    return logged;
}

LogBody read_v2_hashedrekord(const Json& spec) {
    const auto& record = member(spec, "hashedRekordV002");
    return {read_v2_digest(member(record, "data")),
            {read_v2_signature(member(record, "signature"))}};
}

LogBody read_v2_dsse(const Json& spec) {
    const auto& record = member(spec, "dsseV002");
    LogBody body{read_v2_digest(member(record, "payloadHash")), {}};
    for (const auto& signature : list(record, "signatures")) {
        body.signatures.push_back(read_v2_signature(signature));
    }
    return body;
}

}  // namespace

LogBody parse_log_body(const LogEntry& entry) {
    Json document;
    try {
        document = base::parse_json(entry.body, "the log entry", body_limits);
    } catch (const Error& error) {
        malformed_body("is no JSON: " + error.details().why);
    }
    if (text(document, "kind") != entry.kind || text(document, "apiVersion") != entry.version) {
        malformed_body("is of another kind than the entry says");
    }
    const auto& spec = member(document, "spec");
    if (entry.version == "0.0.1") {
        return entry.kind == "dsse" ? read_dsse(spec) : read_hashedrekord(spec);
    }
    return entry.kind == "intoto" ? read_intoto(spec)
           : entry.kind == "dsse" ? read_v2_dsse(spec)
                                  : read_v2_hashedrekord(spec);
}

}  // namespace twinkle::sigstore
