#pragma once
// A Sigstore bundle: a signature with all that is needed to verify it. Parsing checks only its
// form; trust nothing in it before verify() (verify.h) has returned.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sigstore/hash.h"

namespace twinkle::sigstore {

// The log's proof that it has the entry: an audit path to a signed tree head.
struct InclusionProof {
    std::uint64_t log_index = 0;
    std::uint64_t tree_size = 0;
    std::string root_hash;
    std::vector<std::string> hashes;
    std::string checkpoint;  // a signed note (checkpoint.h)
};

// An entry of a transparency log, Rekor v1 or v2.
struct LogEntry {
    std::uint64_t log_index = 0;
    std::string log_id;
    std::string kind;                    // hashedrekord, dsse, intoto
    std::string version;                 // 0.0.1, 0.0.2
    std::uint64_t integrated_time = 0;   // seconds since 1970; 0: none, as in Rekor v2
    std::optional<std::string> promise;  // the signature over entry and time, by Rekor v1
    InclusionProof proof;
    std::string body;  // JSON; what the leaf of the tree is the hash of
};

struct MessageSignature {
    std::optional<Digest> digest;  // of the artifact; a hint by the signer
    std::string signature;
};

// DSSE: a payload that is signed together with its type.
struct Envelope {
    std::string payload_type;
    std::string payload;
    std::string signature;
};

struct Bundle {
    std::string version;      // "0.1", "0.2", "0.3"
    std::string certificate;  // DER; empty: signed with a key that the verifier must have
    std::vector<std::string> other_certificates;  // v0.1 and v0.2: the rest of a chain
    LogEntry entry;
    std::vector<std::string> timestamps;  // RFC 3161 responses, DER
    std::variant<MessageSignature, Envelope> content;

    const std::string& signature() const;
};

// `origin` is the file's name for messages. Throws Refusal(malformed), or Refusal(unsupported) for
// an unknown kind of entry.
Bundle parse_bundle(std::string_view json, std::string_view origin);
Bundle read_bundle(const std::filesystem::path& file);

}  // namespace twinkle::sigstore
