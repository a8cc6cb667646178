#pragma once
// RFC 3161 timestamps, made with OpenSSL.

#include <string>
#include <string_view>

#include "pki.h"

namespace twinkle::test {

// A response in DER: the authority with this certificate says that `message` existed at `time`.
std::string make_timestamp(std::string_view message, Time time, const MadeCertificate& authority,
                           const SigningKey& key, bool with_certificate);

}  // namespace twinkle::test
