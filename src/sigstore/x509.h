#pragma once
// OpenSSL's object of a certificate, for the files here that use OpenSSL.

#include <openssl/x509.h>

#include "sigstore/certificate.h"

namespace twinkle::sigstore {

inline X509* raw(const Certificate& certificate) {
    return static_cast<X509*>(certificate.x509());
}

}  // namespace twinkle::sigstore
