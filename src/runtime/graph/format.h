#pragma once
// fmt for the runtime, compiled in, and once (format.cpp). LibTorch brings headers of another fmt
// than the system's library, and which of the two is found depends on its version.
#undef FMT_SHARED  // nothing of it is exported
#undef FMT_HEADER_ONLY
#include <fmt/format.h>
#include <fmt/ranges.h>
