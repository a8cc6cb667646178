#pragma once
// An X.509 certificate, and Sigstore's claims in it about the signer.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sigstore/public_key.h"
#include "sigstore/time.h"

namespace twinkle::sigstore {

class Certificate {
public:
    // None unless it is DER of exactly one certificate, version 3.
    static std::optional<Certificate> parse(std::string_view der);

    const std::string& der() const { return der_; }
    void* x509() const { return x509_.get(); }  // X509
    std::string spki() const;                   // of its key, DER
    Period validity() const;
    bool is_authority() const;  // may sign certificates
    bool is_self_issued() const;
    // For a leaf: key usage includes digitalSignature, extended key usage includes `purpose`, and
    // it is no authority. For an authority: extended key usage includes `purpose`, or is absent.
    bool allows(int purpose) const;  // XKU_CODE_SIGN, XKU_TIMESTAMP

private:
    Certificate() = default;

    std::shared_ptr<void> x509_;
    std::string der_;
};

// The signer as Fulcio describes it in the certificate. All values are raw, control characters
// included.
struct Signer {
    std::vector<std::string> identities;  // URI, e-mail and other names of the subject
    std::string issuer;                   // of the OIDC token; the same in both extensions
    bool issuer_in_both = false;          // the old extension and the new one are there
    // The other extensions below 1.3.6.1.4.1.57264.1 that are UTF-8 strings, by their last number.
    std::map<int, std::string> claims;

    std::string claim(int number) const;                         // empty: not there
    std::string build_signer() const { return claim(9); }        // the workflow, with its ref
    std::string source_repository() const { return claim(12); }  // "https://github.com/org/name"
};

// Throws Refusal(invalid) if an extension is malformed or duplicated, or the two issuers differ.
Signer read_signer(const Certificate& certificate);

}  // namespace twinkle::sigstore
