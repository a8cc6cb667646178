#include "sigstore/certificate.h"

#include <openssl/x509v3.h>

#include <ctime>

#include "sigstore/openssl.h"
#include "sigstore/x509.h"

namespace twinkle::sigstore {
namespace {

std::optional<Time> time_of(const ASN1_TIME* time) {
    std::tm fields{};
    if (time == nullptr || ASN1_TIME_to_tm(time, &fields) != 1) {
        return std::nullopt;
    }
    return time_from_seconds(timegm(&fields));
}

}  // namespace

std::optional<Certificate> Certificate::parse(std::string_view der) {
    const ErrorQueue errors;
    auto x509 = from_der<X509Pointer>(der, &d2i_X509);
    // Refuses other encodings of the same certificate (BER): its hash must be unique.
    if (!x509 || X509_get_version(x509.get()) != X509_VERSION_3 ||
        to_der<const X509>(x509.get(), &i2d_X509) != der ||
        (X509_get_extension_flags(x509.get()) & EXFLAG_INVALID) != 0 ||
        !time_of(X509_get0_notBefore(x509.get())) || !time_of(X509_get0_notAfter(x509.get()))) {
        return std::nullopt;
    }
    Certificate result;
    result.der_ = der;
    result.x509_ = std::shared_ptr<void>(x509.release(),
                                         [](void* owned) { X509_free(static_cast<X509*>(owned)); });
    return result;
}

std::string Certificate::spki() const {
    return to_der<const X509_PUBKEY>(X509_get_X509_PUBKEY(raw(*this)), &i2d_X509_PUBKEY);
}

Period Certificate::validity() const {
    return {time_of(X509_get0_notBefore(raw(*this))).value(),
            time_of(X509_get0_notAfter(raw(*this)))};
}

bool Certificate::is_authority() const {
    return X509_check_ca(raw(*this)) != 0;
}

bool Certificate::is_self_issued() const {
    return X509_NAME_cmp(X509_get_subject_name(raw(*this)), X509_get_issuer_name(raw(*this))) == 0;
}

bool Certificate::allows(int purpose) const {
    const auto flags = X509_get_extension_flags(raw(*this));
    const bool names_purpose =
        (flags & EXFLAG_XKUSAGE) != 0 &&
        (X509_get_extended_key_usage(raw(*this)) & static_cast<unsigned>(purpose)) != 0;
    if (is_authority()) {
        return names_purpose || (flags & EXFLAG_XKUSAGE) == 0;
    }
    return names_purpose && (flags & EXFLAG_KUSAGE) != 0 &&
           (X509_get_key_usage(raw(*this)) & KU_DIGITAL_SIGNATURE) != 0;
}

}  // namespace twinkle::sigstore
