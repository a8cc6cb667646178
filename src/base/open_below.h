#pragma once
// Opens files below an open folder without following symbolic links.

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"

namespace twinkle::base {

// `path` is relative and contains no "..". Uses openat2(2), or one folder after the other if the
// system has or allows none. `mode` is 0 unless a file is created. No descriptor: errno says why;
// ELOOP: a link is in the way, or is what the path names.
UniqueFd open_below(int folder, const std::string& path, int flags, mode_t mode);

}  // namespace twinkle::base
