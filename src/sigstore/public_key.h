#pragma once
// A public key of one of the kinds that Sigstore uses; verifies signatures.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sigstore/hash.h"

namespace twinkle::sigstore {

enum class KeyKind { p256, p384, p521, rsa, ed25519 };

class PublicKey {
public:
    // Parses a SubjectPublicKeyInfo in DER. None: malformed, of another kind, or RSA outside of
    // 2048 to 8192 bits.
    static std::optional<PublicKey> from_spki(std::string_view der);
    // Parses a PEM block "PUBLIC KEY", and nothing else in the text.
    static std::optional<PublicKey> from_pem(std::string_view pem);

    KeyKind kind() const { return kind_; }
    const std::string& spki() const { return spki_; }
    std::string id() const;  // SHA-256 of the SPKI, as logs are named
    // The key's default hash: SHA-384 for P-384, SHA-512 for P-521, else
    // SHA-256.
    HashAlgorithm usual_hash() const;
    // Key and hash as protobuf-specs name them: "PKIX_ECDSA_P256_SHA_256". Empty: not in the
    // registry.
    std::string details() const;

    // ECDSA and RSA (PKCS #1 v1.5) over the hash of the message, Ed25519 over the message itself.
    bool verify(HashAlgorithm hash, std::string_view message, std::string_view signature) const;
    // The same if only the hash is known; always false for Ed25519.
    bool verify(const Digest& digest, std::string_view signature) const;

private:
    PublicKey() = default;

    std::shared_ptr<void> key_;  // EVP_PKEY
    KeyKind kind_ = KeyKind::p256;
    int bits_ = 0;
    std::string spki_;
};

// The DER in a text that is one PEM block with this label ("CERTIFICATE") and nothing else.
std::optional<std::string> pem_block(std::string_view text, std::string_view label);

}  // namespace twinkle::sigstore
