#pragma once
// The temporary files of this process, to be removed if a signal ends it.

#include <filesystem>

namespace twinkle::base {

// Thread-safe. With very many at once, or very long names, some are not remembered.
void remember_temporary(const std::filesystem::path& file);
void forget_temporary(const std::filesystem::path& file);

// On SIGINT, SIGTERM and SIGHUP removes the remembered files, and ends the process as usual.
void remove_temporaries_at_signals();

}  // namespace twinkle::base
