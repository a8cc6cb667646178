#pragma once
// A token over plain HTTP can be read by everybody between here and the Hub.

#include "hub/settings.h"

namespace twinkle::hub {

// Throws Error(refused) if requests would carry a token to another machine without TLS, and the
// user has not allowed that (TWINKLE_TOKEN_OVER_HTTP).
void refuse_token_in_the_clear(const Settings& settings);

}  // namespace twinkle::hub
