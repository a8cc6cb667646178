#pragma once
// How long a child process may say nothing before it counts as hanging.

#include "child/child_process.h"

#include <chrono>
#include <optional>

namespace twinkle::runtime {

// TWINKLE_SANDBOX_SECONDS, where it is given.
std::optional<std::chrono::seconds> silence_of_environment();

// Shortens the silence for work whose like took so long as a whole, beginning with the start of the
// child: to 20 times that, and 20 s at least. What the environment sets stays.
void shorten_silence(child::Limits& limits, std::chrono::milliseconds took);

}  // namespace twinkle::runtime
