#pragma once
// The content of a Rekor entry: hash, signatures, and their verifiers. One shape for hashedrekord
// and dsse of both versions, and intoto.

#include <string>
#include <vector>

#include "sigstore/bundle.h"

namespace twinkle::sigstore {

struct LoggedSignature {
    std::string signature;
    std::string verifier;      // DER of a certificate or of a key's SPKI
    bool certificate = false;  // which of the two
    std::string key_details;   // v2: the kind of key
};

struct LogBody {
    Digest digest;  // of the artifact, the payload (dsse, intoto), or what DSSE signs (v2)
    std::vector<LoggedSignature> signatures;
};

// Throws Refusal(malformed) if the body is incomplete or not of the kind that the entry says.
LogBody parse_log_body(const LogEntry& entry);

}  // namespace twinkle::sigstore
