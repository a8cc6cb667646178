#pragma once
// RFC 3161 timestamps, made with OpenSSL.

#include <string>
#include <string_view>

#include "pki.h"

namespace twinkle::test {

// A response in DER: `message` was there at `time`, says the authority with this certificate.
std::string make_timestamp(std::string_view message, Time time, const MadeCertificate& authority,
                           const SigningKey& key, bool with_certificate);

}  // namespace twinkle::test
