#pragma once
// URLs: what may be shown of them, their origin, and how names are quoted in them.

#include <optional>
#include <string>
#include <string_view>

namespace twinkle::hub {

// "https://host:443": decides whether a token may be sent. None: not http or https, or no
// host.
std::optional<std::string> origin_of(std::string_view url);

// Resolves a Location or Link target against the URL that it came from. None: not a URL, or neither
// http nor https.
std::optional<std::string> resolve_url(const std::string& base, const std::string& target);

// Returns the URL for display: without user, password, query and fragment (signed URLs have their
// credentials in the query), and safe for a terminal.
std::string redacted_url(std::string_view url);

// Percent-encoding of everything but letters, digits and "-._~"; and of `keep`.
std::string quote(std::string_view text, std::string_view keep = "");

}  // namespace twinkle::hub
