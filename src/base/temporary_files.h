#pragma once
// The temporary files of this process, for a signal that ends it.

#include <filesystem>

namespace twinkle::base {

// Any thread. Of very many at once, or with very long names, the last are not remembered.
void remember_temporary(const std::filesystem::path& file);
void forget_temporary(const std::filesystem::path& file);

// SIGINT, SIGTERM and SIGHUP remove what is remembered, and end the process as ever.
void remove_temporaries_at_signals();

}  // namespace twinkle::base
