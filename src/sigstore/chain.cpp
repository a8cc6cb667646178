#include "sigstore/chain.h"

#include <openssl/x509v3.h>

#include <algorithm>

#include "sigstore/openssl.h"
#include "sigstore/refusal.h"
#include "sigstore/x509.h"

namespace twinkle::sigstore {
namespace {

constexpr int security_level = 2;  // 112 bits: no SHA-1, no RSA below 2048

std::string spki_of(const X509* certificate) {
    return to_der<const X509_PUBKEY>(X509_get_X509_PUBKEY(certificate), &i2d_X509_PUBKEY);
}

using Failure = ChainCheck::Failure;

Failure kind_of(int error, bool leaf) {
    switch (error) {
        case X509_V_ERR_CERT_HAS_EXPIRED:
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return leaf ? Failure::leaf_outside : Failure::issuer_outside;
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: return Failure::unknown_issuer;
        default: return Failure::broken;
    }
}

ChainCheck failure(X509_STORE_CTX* context) {
    const int error = X509_STORE_CTX_get_error(context);
    const bool leaf = X509_STORE_CTX_get_error_depth(context) == 0;
    return {.failure = kind_of(error, leaf), .why = X509_verify_cert_error_string(error)};
}

[[noreturn]] void refuse(const ChainCheck& best, const Certificate& leaf, const TrustedRoot& root,
                         Time at) {
    if (best.failure == Failure::leaf_outside) {
        const auto period = leaf.validity();
        throw Refusal(Reason::invalid, "its certificate, valid from " + format_time(period.start) +
                                           " to " + format_time(*period.end) +
                                           ", was not valid when it signed, at " + format_time(at));
    }
    if (best.failure == Failure::broken) {
        throw Refusal(Reason::invalid, "its certificate does not hold: " + best.why);
    }
    throw Refusal(Reason::root_too_old,
                  "no certificate authority of " + root.description() +
                      " vouches for its certificate at " + format_time(at) + ": " + best.why +
                      "; the root is older than the signature, or of another Sigstore instance",
                  newer_root_hint(root));
}

}  // namespace

ChainCheck check_chain(const Certificate& leaf, const std::vector<Certificate>& chain, Time at) {
    const ErrorQueue errors;
    const StorePointer store(X509_STORE_new());
    const StoreContext context(X509_STORE_CTX_new());
    const CertificateStack between(sk_X509_new_null());
    if (!store || !context || !between || chain.empty() ||
        X509_STORE_add_cert(store.get(), raw(chain.back())) != 1) {
        return {.failure = Failure::broken, .why = "out of memory"};
    }
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
        sk_X509_push(between.get(), raw(chain[i]));
    }
    if (X509_STORE_CTX_init(context.get(), store.get(), raw(leaf), between.get()) != 1) {
        return {.failure = Failure::broken, .why = "out of memory"};
    }
    auto* param = X509_STORE_CTX_get0_param(context.get());
    X509_VERIFY_PARAM_set_time(param, static_cast<std::time_t>(to_seconds(at)));
    X509_VERIFY_PARAM_set_auth_level(param, security_level);
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN);
    X509_VERIFY_PARAM_set_depth(param, 8);
    if (X509_verify_cert(context.get()) != 1) {
        return failure(context.get());
    }
    const STACK_OF(X509)* built = X509_STORE_CTX_get0_chain(context.get());
    if (sk_X509_num(built) < 2) {
        return {.failure = Failure::broken, .why = "the certificate is its own authority"};
    }
    return {.valid = true, .issuer_spki = spki_of(sk_X509_value(built, 1))};
}

std::string verify_chain(const Certificate& leaf, const TrustedRoot& root, Time at) {
    if (leaf.is_authority() || !leaf.allows(XKU_CODE_SIGN)) {
        throw Refusal(Reason::invalid, "its certificate is not one for signing code");
    }
    ChainCheck best{.why = "no authority issued it"};
    for (const auto& authority : root.authorities) {
        auto check = check_chain(leaf, authority.chain, at);
        if (check.valid && !authority.valid.contains(at)) {
            check = {.failure = Failure::issuer_outside,
                     .why = "the time of " + authority.name + " there is from " +
                            format_time(authority.valid.start) +
                            (authority.valid.end ? " to " + format_time(*authority.valid.end)
                                                 : std::string())};
        } else if (check.valid &&
                   !std::all_of(authority.chain.begin(), authority.chain.end(),
                                [](const auto& one) { return one.allows(XKU_CODE_SIGN); })) {
            check = {.failure = Failure::broken,
                     .why = "that authority is not one for signing code"};
        }
        if (check.valid) {
            return check.issuer_spki;
        }
        if (check.failure > best.failure) {
            best = std::move(check);
        }
    }
    refuse(best, leaf, root, at);
}

}  // namespace twinkle::sigstore
