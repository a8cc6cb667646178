#include "sigstore/bundle.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "sigstore/proto_json.h"
#include "sigstore/refusal.h"

namespace twinkle::sigstore {
namespace {

constexpr base::JsonLimits limits{.bytes = 32u << 20, .depth = 16};
constexpr std::size_t most_timestamps = 32;
constexpr std::size_t most_certificates = 10;

std::string version_of(std::string_view media_type) {
    for (const char* version : {"0.1", "0.2", "0.3"}) {
        if (media_type ==
            std::string("application/vnd.dev.sigstore.bundle+json;version=") + version) {
            return version;
        }
    }
    return media_type == "application/vnd.dev.sigstore.bundle.v0.3+json" ? "0.3" : "";
}

std::string read_certificate(ProtoMessage message) {
    auto der = message.bytes("rawBytes");
    message.done();
    if (der.empty()) {
        message.fail("rawBytes", "is empty");
    }
    return der;
}

// The name of the one field present; exactly one must be.
std::string one_of(const ProtoMessage& message, std::initializer_list<const char*> keys) {
    std::string found;
    std::string all;
    for (const char* key : keys) {
        if (message.has(key)) {
            if (!found.empty()) {
                message.fail(key, "and " + found + " exclude each other");
            }
            found = key;
        }
        all += (all.empty() ? "" : ", ") + std::string(key);
    }
    if (found.empty()) {
        message.fail("", "has none of: " + all);
    }
    return found;
}

void read_signer(ProtoMessage& material, Bundle& bundle) {
    const auto kind = one_of(material, {"publicKey", "x509CertificateChain", "certificate"});
    if (kind == "publicKey") {
        auto key = material.message("publicKey");
        key.optional_text("hint");
        key.done();
    } else if (kind == "certificate") {
        if (bundle.version != "0.3") {
            material.fail("certificate", "is not a field of version " + bundle.version);
        }
        bundle.certificate = read_certificate(material.message("certificate"));
    } else {
        if (bundle.version == "0.3") {
            material.fail("x509CertificateChain", "is not a field of version 0.3");
        }
        auto chain = material.message("x509CertificateChain");
        auto certificates = chain.messages("certificates");
        chain.done();
        if (certificates.empty() || certificates.size() > most_certificates) {
            chain.fail("certificates", certificates.empty() ? "is empty" : "is too long");
        }
        for (auto& certificate : certificates) {
            bundle.other_certificates.push_back(read_certificate(std::move(certificate)));
        }
        bundle.certificate = std::move(bundle.other_certificates.front());
        bundle.other_certificates.erase(bundle.other_certificates.begin());
    }
}

InclusionProof read_proof(ProtoMessage message) {
    InclusionProof proof;
    proof.log_index = message.count("logIndex");
    proof.tree_size = message.count("treeSize");
    proof.root_hash = message.bytes("rootHash");
    proof.hashes = message.bytes_list("hashes");
    // Version 0.1 allows a proof without checkpoint; it would prove nothing.
    auto checkpoint = message.optional_message("checkpoint");
    if (checkpoint) {
        proof.checkpoint = checkpoint->text("envelope");
        checkpoint->done();
    }
    message.done();
    if (proof.log_index >= proof.tree_size) {
        message.fail("logIndex", "is not below treeSize");
    }
    if (proof.checkpoint.empty()) {
        message.fail("checkpoint", "is missing");
    }
    return proof;
}

bool is_known(const LogEntry& entry) {
    return (entry.version == "0.0.1" && (entry.kind == "hashedrekord" || entry.kind == "dsse")) ||
           (entry.version == "0.0.2" &&
            (entry.kind == "hashedrekord" || entry.kind == "dsse" || entry.kind == "intoto"));
}

LogEntry read_entry(ProtoMessage message) {
    LogEntry entry;
    entry.log_index = message.count("logIndex");
    auto id = message.message("logId");
    entry.log_id = id.bytes("keyId");
    id.done();
    auto kind = message.message("kindVersion");
    entry.kind = kind.text("kind");
    entry.version = kind.text("version");
    kind.done();
    entry.integrated_time = message.count("integratedTime");
    if (auto promise = message.optional_message("inclusionPromise")) {
        entry.promise = promise->bytes("signedEntryTimestamp");
        promise->done();
    }
    entry.proof = read_proof(message.message("inclusionProof"));
    entry.body = message.bytes("canonicalizedBody");
    message.done();
    if (!is_known(entry)) {
        throw Refusal(Reason::unsupported,
                      "its log entry is of kind '" + base::printable(entry.kind) + "', version '" +
                          base::printable(entry.version) + "'",
                      "a newer twinkle may know it");
    }
    return entry;
}

std::vector<std::string> read_timestamps(ProtoMessage& material) {
    std::vector<std::string> timestamps;
    auto data = material.optional_message("timestampVerificationData");
    if (!data) {
        return timestamps;
    }
    for (auto& message : data->messages("rfc3161Timestamps")) {
        timestamps.push_back(message.bytes("signedTimestamp"));
        message.done();
    }
    data->done();
    if (timestamps.size() > most_timestamps) {
        data->fail("rfc3161Timestamps", "has more than 32 timestamps");
    }
    const std::set<std::string> different(timestamps.begin(), timestamps.end());
    if (different.size() != timestamps.size()) {
        data->fail("rfc3161Timestamps", "has the same timestamp twice");
    }
    return timestamps;
}

void read_material(ProtoMessage material, Bundle& bundle) {
    read_signer(material, bundle);
    auto entries = material.messages("tlogEntries");
    if (entries.size() != 1) {
        material.fail("tlogEntries", "has " + std::to_string(entries.size()) +
                                         " entries of a log; there must be one");
    }
    bundle.entry = read_entry(std::move(entries.front()));
    bundle.timestamps = read_timestamps(material);
    material.done();
    if (bundle.version == "0.1" && !bundle.entry.promise) {
        material.fail("tlogEntries[0].inclusionPromise", "is missing, which version 0.1 must have");
    }
}

MessageSignature read_message_signature(ProtoMessage message) {
    MessageSignature result;
    if (auto digest = message.optional_message("messageDigest")) {
        const auto algorithm = hash_from_proto(digest->text("algorithm"));
        if (!algorithm) {
            digest->fail("algorithm", "is not SHA2_256, SHA2_384 or SHA2_512");
        }
        result.digest = Digest{*algorithm, digest->bytes("digest")};
        digest->done();
    }
    result.signature = message.bytes("signature");
    message.done();
    return result;
}

Envelope read_envelope(ProtoMessage message) {
    Envelope envelope;
    envelope.payload = message.bytes("payload");
    envelope.payload_type = message.text("payloadType");
    auto signatures = message.messages("signatures");
    message.done();
    if (signatures.size() != 1) {
        message.fail("signatures", "must have one signature");
    }
    envelope.signature = signatures.front().bytes("sig");
    signatures.front().optional_text("keyid");
    signatures.front().done();
    return envelope;
}

[[noreturn]] void malformed(std::string_view origin, std::string why) {
    throw Refusal(Reason::malformed, {.what = "the signature bundle is malformed",
                                      .where = std::string(origin),
                                      .why = std::move(why),
                                      .hint = {}});
}

Bundle read(const base::Json& json, std::string_view origin) {
    ProtoMessage message(json, "",
                         [origin](std::string why) { malformed(origin, std::move(why)); });
    Bundle bundle;
    bundle.version = version_of(message.text("mediaType"));
    if (bundle.version.empty()) {
        message.fail("mediaType", "is not that of a bundle of version 0.1, 0.2 or 0.3");
    }
    read_material(message.message("verificationMaterial"), bundle);
    if (one_of(message, {"messageSignature", "dsseEnvelope"}) == "messageSignature") {
        bundle.content = read_message_signature(message.message("messageSignature"));
    } else {
        bundle.content = read_envelope(message.message("dsseEnvelope"));
    }
    message.done();
    if (bundle.signature().empty()) {
        message.fail("", "has an empty signature");
    }
    return bundle;
}

}  // namespace

const std::string& Bundle::signature() const {
    const auto* message = std::get_if<MessageSignature>(&content);
    return message != nullptr ? message->signature : std::get<Envelope>(content).signature;
}

Bundle parse_bundle(std::string_view json, std::string_view origin) {
    base::Json document;
    try {
        document = base::parse_json(json, origin, limits);
    } catch (const Error& error) {
        auto details = error.details();
        details.what = "the signature bundle is malformed";
        throw Refusal(Reason::malformed, std::move(details));
    }
    return read(document, origin);
}

Bundle read_bundle(const std::filesystem::path& file) {
    return parse_bundle(base::read_file(file, "signature bundle", limits.bytes),
                        base::display_path(file));
}

}  // namespace twinkle::sigstore
