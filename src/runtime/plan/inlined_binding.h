#pragma once
// How the call that replaces a call inlined by a trace is made: as was proved of each candidate.

#include "runtime/plan/site.h"

#include <tl/expected.hpp>

namespace twinkle::runtime {

// With more results a call is kept: InlinedPlace::given has a bit for each.
inline constexpr std::size_t most_inlined_results = 60;

// Binds one of the choices of an InlinedCallSite. Of the results it gives those that every choice
// of the site gives, so that calls may go to any of them. The error says why there is no such call.
tl::expected<CallBinding, KeepReason> binding_for(const Site& site, const Choice& choice);

// The site's place, with what such a call gives.
InlinedPlace place_given_by(const InlinedCallSite& site, const CallBinding& binding);

}  // namespace twinkle::runtime
