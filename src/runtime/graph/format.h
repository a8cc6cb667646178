#pragma once
// fmt, compiled in: LibTorch brings headers of another fmt than the system's library, and which of
// the two is found depends on its version.
#define FMT_HEADER_ONLY 1
#include <fmt/format.h>
#include <fmt/ranges.h>
