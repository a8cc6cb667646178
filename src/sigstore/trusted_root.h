#pragma once
// Whom to trust: the keys and certificates of one Sigstore instance, each for its period.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sigstore/certificate.h"
#include "sigstore/public_key.h"
#include "sigstore/time.h"

namespace twinkle::sigstore {

struct TransparencyLog {
    std::string url;
    std::vector<std::string> ids;  // by which entries name it
    PublicKey key;
    HashAlgorithm hash;           // that the key signs with
    std::optional<Period> valid;  // none: always
    bool valid_at(Time time) const { return !valid || valid->contains(time); }
};

struct CertificateAuthority {
    std::string name;                // for messages
    std::vector<Certificate> chain;  // from the leaf (or the lowest authority) to the root
    Period valid;
};

struct TrustedRoot {
    std::string origin;  // a file's name, or what the built-in one is
    std::vector<CertificateAuthority> authorities;
    std::vector<CertificateAuthority> timestamp_authorities;
    std::vector<TransparencyLog> signature_logs;    // Rekor
    std::vector<TransparencyLog> certificate_logs;  // CT

    const TransparencyLog* signature_log(std::string_view id) const;
    const TransparencyLog* certificate_log(std::string_view id) const;
    // The start of the youngest key or authority: the root knows nothing later.
    std::optional<Time> newest() const;
    // "the trusted root (built in, of 2026-08-06; its newest entry is of 2025-09-23)"
    std::string description() const;

    std::string recorded;  // "2026-08-06": when the built-in one was taken; empty for a file
};

// Throws Error(malformed). Skips logs whose kinds of keys this version does not know.
TrustedRoot parse_trusted_root(std::string_view json, std::string_view origin);
TrustedRoot read_trusted_root(const std::filesystem::path& file);

// The root of the public instance (sigstore.dev), built in.
const TrustedRoot& public_trusted_root();

// The `hint` of an error for a trusted root that is too old.
std::string newer_root_hint(const TrustedRoot& root);

}  // namespace twinkle::sigstore
