#include "sigstore/timestamp.h"

#include <openssl/x509v3.h>

#include <ctime>

#include "sigstore/chain.h"
#include "sigstore/openssl.h"
#include "sigstore/refusal.h"

namespace twinkle::sigstore {
namespace {

using Response = std::unique_ptr<TS_RESP, FreeWith<TS_RESP_free>>;

[[noreturn]] void malformed_timestamp(std::string_view why) {
    throw Refusal(Reason::malformed, "a timestamp in it " + std::string(why));
}

TS_TST_INFO* info_of(const std::shared_ptr<void>& response) {
    return TS_RESP_get_tst_info(static_cast<TS_RESP*>(response.get()));
}

Time read_time(const ASN1_GENERALIZEDTIME* time) {
    std::tm fields{};
    const auto seconds = time != nullptr && ASN1_TIME_to_tm(time, &fields) == 1
                             ? time_from_seconds(timegm(&fields))
                             : std::nullopt;
    if (!seconds) {
        malformed_timestamp("has no time");
    }
    return *seconds;
}

std::optional<HashAlgorithm> imprint_hash(const TS_MSG_IMPRINT* imprint) {
    const ASN1_OBJECT* object = nullptr;
    X509_ALGOR_get0(&object, nullptr, nullptr,
                    TS_MSG_IMPRINT_get_algo(const_cast<TS_MSG_IMPRINT*>(imprint)));
    switch (OBJ_obj2nid(object)) {
        case NID_sha256: return HashAlgorithm::sha256;
        case NID_sha384: return HashAlgorithm::sha384;
        case NID_sha512: return HashAlgorithm::sha512;
        default: return std::nullopt;
    }
}

bool granted(const TS_RESP* response) {
    const TS_STATUS_INFO* status = TS_RESP_get_status_info(const_cast<TS_RESP*>(response));
    const auto value = ASN1_INTEGER_get(TS_STATUS_INFO_get0_status(status));
    return value == TS_STATUS_GRANTED || value == TS_STATUS_GRANTED_WITH_MODS;
}

bool is_signature_algorithm(const X509_ALGOR* algorithm) {
    const ASN1_OBJECT* object = nullptr;
    X509_ALGOR_get0(&object, nullptr, nullptr, algorithm);
    switch (OBJ_obj2nid(object)) {
        case NID_ecdsa_with_SHA256:
        case NID_ecdsa_with_SHA384:
        case NID_ecdsa_with_SHA512:
        case NID_X9_62_id_ecPublicKey:
        case NID_rsaEncryption:
        case NID_sha256WithRSAEncryption:
        case NID_sha384WithRSAEncryption:
        case NID_sha512WithRSAEncryption: return true;
        default: return false;
    }
}

// A hash without parameters, or with the NULL that old encoders write.
bool is_plain_hash(const X509_ALGOR* algorithm, int nid) {
    const ASN1_OBJECT* object = nullptr;
    int parameter = V_ASN1_UNDEF;
    X509_ALGOR_get0(&object, &parameter, nullptr, algorithm);
    return OBJ_obj2nid(object) == nid && (parameter == V_ASN1_UNDEF || parameter == V_ASN1_NULL);
}

// Checks the frame around the signer: version 3 (the signed content is not plain data), and one
// hash, the signer's own.
bool has_usual_frame(const PKCS7_SIGNED* frame, const PKCS7_SIGNER_INFO* signer) {
    const ASN1_OBJECT* object = nullptr;
    X509_ALGOR_get0(&object, nullptr, nullptr, signer->digest_alg);
    const int nid = OBJ_obj2nid(object);
    return frame != nullptr && ASN1_INTEGER_get(frame->version) == 3 &&
           sk_X509_ALGOR_num(frame->md_algs) == 1 && is_plain_hash(signer->digest_alg, nid) &&
           is_plain_hash(sk_X509_ALGOR_value(frame->md_algs, 0), nid);
}

// Checks the parts of a signature that it does not cover and OpenSSL does not check: one signer,
// with this certificate's issuer.
bool names_signer(PKCS7* token, const X509* leaf) {
    const auto* signers = PKCS7_get_signer_info(token);
    if (signers == nullptr || sk_PKCS7_SIGNER_INFO_num(signers) != 1) {
        return false;
    }
    const PKCS7_SIGNER_INFO* signer = sk_PKCS7_SIGNER_INFO_value(signers, 0);
    const auto name_der = [](const X509_NAME* name) {
        return to_der<const X509_NAME>(name, &i2d_X509_NAME);
    };
    return ASN1_INTEGER_get(signer->version) == 1 && has_usual_frame(token->d.sign, signer) &&
           is_signature_algorithm(signer->digest_enc_alg) &&
           name_der(signer->issuer_and_serial->issuer) == name_der(X509_get_issuer_name(leaf));
}

// OpenSSL's check of the token's signature also checks the certificates: this store gives it trust
// and time.
StorePointer store_for(const CertificateAuthority& authority, Time at) {
    StorePointer store(X509_STORE_new());
    const std::unique_ptr<X509_VERIFY_PARAM, FreeWith<X509_VERIFY_PARAM_free>> param(
        X509_VERIFY_PARAM_new());
    if (!store || !param ||
        X509_STORE_add_cert(store.get(), static_cast<X509*>(authority.chain.back().x509())) != 1) {
        return nullptr;
    }
    X509_VERIFY_PARAM_set_time(param.get(), static_cast<std::time_t>(to_seconds(at)));
    X509_VERIFY_PARAM_set_flags(param.get(), X509_V_FLAG_PARTIAL_CHAIN);
    X509_VERIFY_PARAM_set_auth_level(param.get(), 2);
    return X509_STORE_set1_param(store.get(), param.get()) == 1 ? std::move(store) : nullptr;
}

}  // namespace

Timestamp Timestamp::parse(std::string_view bytes) {
    const ErrorQueue errors;
    auto response = from_der<Response>(bytes, &d2i_TS_RESP);
    // Refuses other encodings of the same response (BER).
    if (!response || to_der<const TS_RESP>(response.get(), &i2d_TS_RESP) != bytes ||
        !granted(response.get()) || TS_RESP_get_token(response.get()) == nullptr ||
        TS_RESP_get_tst_info(response.get()) == nullptr) {
        malformed_timestamp("is no granted RFC 3161 response");
    }
    Timestamp result;
    result.time_ = read_time(TS_TST_INFO_get_time(TS_RESP_get_tst_info(response.get())));
    result.response_ = std::shared_ptr<void>(
        response.release(), [](void* owned) { TS_RESP_free(static_cast<TS_RESP*>(owned)); });
    return result;
}

bool Timestamp::is_over(std::string_view message) const {
    TS_MSG_IMPRINT* imprint = TS_TST_INFO_get_msg_imprint(info_of(response_));
    const auto algorithm = imprint != nullptr ? imprint_hash(imprint) : std::nullopt;
    if (!algorithm) {
        return false;
    }
    const ASN1_OCTET_STRING* said = TS_MSG_IMPRINT_get_msg(imprint);
    return hash(*algorithm, message) ==
           std::string_view(reinterpret_cast<const char*>(ASN1_STRING_get0_data(said)),
                            static_cast<std::size_t>(ASN1_STRING_length(said)));
}

bool Timestamp::signed_by(const CertificateAuthority& authority, std::string& why) const {
    const auto& leaf = authority.chain.front();
    if (authority.chain.size() < 2 || leaf.is_authority() || !leaf.allows(XKU_TIMESTAMP)) {
        why = "the trusted root has no certificate for timestamps of " + authority.name;
        return false;
    }
    const auto check = check_chain(leaf, authority.chain, time_);
    if (!check.valid) {
        why = authority.name + " may not have made it then: " + check.why;
        return false;
    }
    const auto store = store_for(authority, time_);
    const CertificateStack known(sk_X509_new_null());
    for (const auto& certificate : authority.chain) {
        if (known) {
            sk_X509_push(known.get(), static_cast<X509*>(certificate.x509()));
        }
    }
    X509* signer = nullptr;
    auto* token = TS_RESP_get_token(static_cast<TS_RESP*>(response_.get()));
    const bool holds =
        store && known && TS_RESP_verify_signature(token, known.get(), store.get(), &signer) == 1;
    const X509Pointer owned(signer);
    const auto* expected = static_cast<const X509*>(leaf.x509());
    if (!holds || signer == nullptr || X509_cmp(signer, expected) != 0 ||
        !names_signer(token, expected)) {
        why = "it is not signed by " + authority.name;
        return false;
    }
    return true;
}

Timestamp::Check Timestamp::verify(std::string_view message, const TrustedRoot& root) const {
    const ErrorQueue errors;
    if (TS_TST_INFO_get_version(info_of(response_)) != 1 || !is_over(message)) {
        return {.why = "a timestamp in it is over something else"};
    }
    Check check{.why = "the trusted root has no authority for timestamps"};
    for (const auto& authority : root.timestamp_authorities) {
        if (!signed_by(authority, check.why)) {
            continue;
        }
        if (authority.valid.contains(time_)) {
            return {.holds = true};
        }
        check.root_too_old = true;
        check.why = "it does not vouch for " + authority.name + " at " + format_time(time_);
    }
    return check;
}

}  // namespace twinkle::sigstore
