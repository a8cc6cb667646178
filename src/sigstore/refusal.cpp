#include "sigstore/refusal.h"

namespace twinkle::sigstore {
namespace {

ErrorCode code_of(Reason reason) {
    return reason == Reason::malformed ? ErrorCode::malformed : ErrorCode::verification;
}

const char* summary(Reason reason) {
    switch (reason) {
        case Reason::malformed: return "the signature bundle is malformed";
        case Reason::unsupported: return "the signature is of a kind that twinkle cannot verify";
        case Reason::root_too_old: return "the trusted root does not vouch for the signature";
        case Reason::signed_by_other: return "the file is signed by somebody else";
        case Reason::content_differs: return "the file is not what was signed";
        case Reason::invalid: break;
    }
    return "the signature does not hold";
}

}  // namespace

std::string_view reason_name(Reason reason) {
    switch (reason) {
        case Reason::malformed: return "malformed";
        case Reason::unsupported: return "unsupported";
        case Reason::root_too_old: return "root-too-old";
        case Reason::signed_by_other: return "signed-by-other";
        case Reason::content_differs: return "content-differs";
        case Reason::invalid: break;
    }
    return "invalid";
}

Refusal::Refusal(Reason reason, std::string why, std::string hint)
    : Refusal(reason, ErrorDetails{.what = summary(reason),
                                   .where = {},
                                   .why = std::move(why),
                                   .hint = std::move(hint)}) {}

Refusal::Refusal(Reason reason, ErrorDetails details)
    : Error(code_of(reason), std::move(details)), reason_(reason) {}

}  // namespace twinkle::sigstore
