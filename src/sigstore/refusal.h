#pragma once
// Why a signature is not accepted: an enumerator for programs, plain words for people.

#include <string>
#include <string_view>

#include "twinkle/error.h"

namespace twinkle::sigstore {

enum class Reason {
    malformed,        // no bundle, or one that breaks the rules of its format
    unsupported,      // of a kind that this version cannot verify
    root_too_old,     // the trusted root does not know who made it, or knows them for another time
    signed_by_other,  // it holds, but somebody else signed
    content_differs,  // it holds, but for other bytes
    invalid,          // a signature, proof, timestamp or certificate in it does not hold
};

// "malformed", "root-too-old", …: the spelling used in JSON.
std::string_view reason_name(Reason reason);

// Its exit code is that of a malformed file for Reason::malformed, else of a failed verification.
class Refusal : public Error {
public:
    Refusal(Reason reason, std::string why, std::string hint = {});
    // The same with another `what` and `where`.
    Refusal(Reason reason, ErrorDetails details);

    Reason reason() const { return reason_; }

private:
    Reason reason_;
};

}  // namespace twinkle::sigstore
