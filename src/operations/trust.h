#pragma once
// Whose kernels are let in: publishers that the Hub vouches for, and what the user trusts.

#include <span>
#include <string>
#include <vector>

#include "operations/context.h"

namespace twinkle::operations {

// What a project trusts (it may be in none), and what the caller does besides.
std::vector<std::string> trusted_by(const Project* project, std::span<const std::string> more);

// `trusted`: "org/name", "org/*" or "org" from the manifest's `trust` and from --trust. Throws
// Error(refused) with what would allow it. Offline nobody can be asked: a warning, as the kernels
// were let in when they were downloaded.
void require_trust(Context& context, std::span<const std::string> repositories,
                   std::span<const std::string> trusted);

}  // namespace twinkle::operations
