#include "sigstore/trusted_root.h"

#include <algorithm>

#include "base/file.h"
#include "sigstore/proto_json.h"
#include "sigstore/trusted_root_data.h"

namespace twinkle::sigstore {
namespace {

constexpr base::JsonLimits root_limits{.bytes = 4u << 20, .depth = 16};

Time read_time(ProtoMessage& message, const char* key) {
    const auto time = parse_time(message.text(key));
    if (!time) {
        message.fail(key, "is no time as RFC 3339 writes it");
    }
    return *time;
}

// Requires the start: without it the key would have no time from which it is trusted.
Period read_period(ProtoMessage message) {
    Period period;
    period.start = read_time(message, "start");
    if (message.has("end")) {
        period.end = read_time(message, "end");
    }
    message.optional_text("end");
    message.done();
    return period;
}

// The hash that a log signs with, by the name of its kind of key; none if unknown.
std::optional<HashAlgorithm> hash_for(const std::string& details, KeyKind kind) {
    const auto is = [&](const char* prefix) { return details.starts_with(prefix); };
    if (details == "PKIX_ECDSA_P256_SHA_256" && kind == KeyKind::p256) {
        return HashAlgorithm::sha256;
    }
    if (details == "PKIX_ECDSA_P384_SHA_384" && kind == KeyKind::p384) {
        return HashAlgorithm::sha384;
    }
    if (details == "PKIX_ECDSA_P521_SHA_512" && kind == KeyKind::p521) {
        return HashAlgorithm::sha512;
    }
    if ((is("PKIX_RSA_PKCS1V15_") || details == "PKIX_RSA_PKCS1V5") && kind == KeyKind::rsa) {
        return HashAlgorithm::sha256;
    }
    return details == "PKIX_ED25519" && kind == KeyKind::ed25519
               ? std::optional(HashAlgorithm::sha512)
               : std::nullopt;
}

std::optional<TransparencyLog> read_log(ProtoMessage message) {
    auto key = message.message("publicKey");
    const auto spki = key.bytes("rawBytes");
    const auto details = key.text("keyDetails");
    auto valid = key.optional_message("validFor");
    const auto period = valid ? std::optional(read_period(std::move(*valid))) : std::nullopt;
    key.done();
    const auto url = message.optional_text("baseUrl").value_or("");
    message.optional_text("hashAlgorithm");
    message.optional_text("operator");
    std::vector<std::string> ids;
    for (const char* field : {"logId", "checkpointKeyId"}) {
        if (auto id = message.optional_message(field)) {
            ids.push_back(id->bytes("keyId"));
            id->done();
        }
    }
    message.done();
    const auto read_key = PublicKey::from_spki(spki);
    const auto hash = read_key ? hash_for(details, read_key->kind()) : std::nullopt;
    if (!hash) {
        return std::nullopt;
    }
    ids.push_back(read_key->id());
    return TransparencyLog{url, std::move(ids), *read_key, *hash, period};
}

std::vector<TransparencyLog> read_logs(ProtoMessage& root, const char* key) {
    std::vector<TransparencyLog> logs;
    for (auto& message : root.messages(key)) {
        if (auto log = read_log(std::move(message))) {
            logs.push_back(std::move(*log));
        }
    }
    return logs;
}

CertificateAuthority read_authority(ProtoMessage message) {
    CertificateAuthority authority;
    if (auto subject = message.optional_message("subject")) {
        subject->optional_text("organization");
        authority.name = subject->optional_text("commonName").value_or("");
        subject->done();
    }
    const auto uri = message.optional_text("uri").value_or("");
    authority.name = uri.empty() ? authority.name : uri;
    message.optional_text("operator");
    auto chain = message.message("certChain");
    for (auto& entry : chain.messages("certificates")) {
        const auto certificate = Certificate::parse(entry.bytes("rawBytes"));
        entry.done();
        if (!certificate) {
            entry.fail("rawBytes", "is no certificate");
        }
        authority.chain.push_back(*certificate);
    }
    chain.done();
    if (authority.chain.empty()) {
        chain.fail("certificates", "is empty");
    }
    authority.valid = read_period(message.message("validFor"));
    message.done();
    return authority;
}

std::vector<CertificateAuthority> read_authorities(ProtoMessage& root, const char* key) {
    std::vector<CertificateAuthority> authorities;
    for (auto& message : root.messages(key)) {
        authorities.push_back(read_authority(std::move(message)));
    }
    return authorities;
}

bool is_media_type(std::string_view text) {
    constexpr std::string_view prefix = "application/vnd.dev.sigstore.trustedroot";
    if (!text.starts_with(prefix)) {
        return false;
    }
    text.remove_prefix(prefix.size());
    return text == "+json;version=0.1" || text == ".v0.1+json" || text == ".v0.2+json";
}

const TransparencyLog* find_log(const std::vector<TransparencyLog>& logs, std::string_view id) {
    for (const auto& log : logs) {
        if (std::find(log.ids.begin(), log.ids.end(), id) != log.ids.end()) {
            return &log;
        }
    }
    return nullptr;
}

}  // namespace

const TransparencyLog* TrustedRoot::signature_log(std::string_view id) const {
    return find_log(signature_logs, id);
}

const TransparencyLog* TrustedRoot::certificate_log(std::string_view id) const {
    return find_log(certificate_logs, id);
}

std::optional<Time> TrustedRoot::newest() const {
    std::optional<Time> newest;
    const auto add = [&](Time start) { newest = newest ? std::max(*newest, start) : start; };
    for (const auto* logs : {&signature_logs, &certificate_logs}) {
        for (const auto& log : *logs) {
            if (log.valid) {
                add(log.valid->start);
            }
        }
    }
    for (const auto* list : {&authorities, &timestamp_authorities}) {
        for (const auto& authority : *list) {
            add(authority.valid.start);
        }
    }
    return newest;
}

std::string TrustedRoot::description() const {
    const auto since = newest();
    return "the trusted root (" + origin + (recorded.empty() ? "" : ", of " + recorded) +
           (since ? "; its newest entry is of " + format_time(*since).substr(0, 10) : "") + ")";
}

TrustedRoot parse_trusted_root(std::string_view json, std::string_view origin) {
    const auto document = base::parse_json(json, origin, root_limits);
    ProtoMessage message(document, "", [origin](std::string why) {
        throw Error(ErrorCode::malformed, {.what = "the trusted root is malformed",
                                           .where = std::string(origin),
                                           .why = std::move(why),
                                           .hint = {}});
    });
    if (!is_media_type(message.text("mediaType"))) {
        message.fail("mediaType", "is not that of a trusted root of version 0.1 or 0.2");
    }
    TrustedRoot root;
    root.origin = origin;
    root.signature_logs = read_logs(message, "tlogs");
    root.certificate_logs = read_logs(message, "ctlogs");
    root.authorities = read_authorities(message, "certificateAuthorities");
    root.timestamp_authorities = read_authorities(message, "timestampAuthorities");
    message.done();
    return root;
}

TrustedRoot read_trusted_root(const std::filesystem::path& file) {
    return parse_trusted_root(base::read_file(file, "trusted root", root_limits.bytes),
                              base::display_path(file));
}

const TrustedRoot& public_trusted_root() {
    static const TrustedRoot root = [] {
        auto parsed = parse_trusted_root(trusted_root_json, "built in");
        parsed.recorded = trusted_root_date;
        return parsed;
    }();
    return root;
}

std::string newer_root_hint(const TrustedRoot& root) {
    return root.recorded.empty() ? "get a newer trusted root of that Sigstore instance"
                                 : "a newer twinkle, or --trusted-root with a newer "
                                   "trusted_root.json of sigstore.dev";
}

}  // namespace twinkle::sigstore
