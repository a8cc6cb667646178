#pragma once
// Keys and certificates for tests, made with OpenSSL.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sigstore/time.h"

namespace twinkle::test {

using sigstore::Time;

Time at(std::string_view text);  // "2026-03-01T12:00:00Z"

class SigningKey {
public:
    // "P-256", "P-384", "P-521", "RSA" (2048 bits), "ED25519"
    static SigningKey make(const std::string& kind);

    std::string sign(std::string_view message, const char* hash = "SHA256") const;
    std::string spki() const;
    std::string raw_public() const;  // Ed25519: 32 bytes
    std::string pem() const;         // of the public key
    void* get() const { return key_.get(); }

private:
    std::shared_ptr<void> key_;  // EVP_PKEY
};

struct Extension {
    std::string oid = {};
    std::string value = {};  // DER
    bool critical = false;
};

struct CertificateSpec {
    std::string name = {};  // empty: no subject
    Time from = {}, to = {};
    bool authority = false;
    std::string key_usage = "critical,digitalSignature";
    std::string extended_key_usage = {};  // "codeSigning", "critical,timeStamping"; empty: none
    std::string subject_names = {};       // "critical,URI:https://…"; empty: none
    std::vector<Extension> extensions = {};
};

// The signed part of a certificate, without certificate timestamps, and how to add them.
class MadeCertificate {
public:
    // Without an issuer it is self-signed.
    static MadeCertificate make(const CertificateSpec& spec, const SigningKey& key,
                                const MadeCertificate* issuer, const SigningKey& issuer_key);

    std::string der() const;
    std::string pem() const;
    std::string spki() const;
    std::string signed_part() const;                                     // the TBSCertificate
    void add(const Extension& extension, const SigningKey& issuer_key);  // signs it again
    void* get() const { return x509_.get(); }

private:
    std::shared_ptr<void> x509_;
};

std::string der_utf8(std::string_view text);
std::string der_octets(std::string_view bytes);

}  // namespace twinkle::test
