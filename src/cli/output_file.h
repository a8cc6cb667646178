#pragma once
// The files that commands write where a user says: none may take the place of what is read, or of
// another kind of file. Checked before any work begins.

#include <filesystem>
#include <string>
#include <vector>

namespace twinkle::cli {

enum class OutputKind {
    tensors,  // a model, or what it computes
    text,     // a mapping, a report, a drawing
};

// Throws Error(malformed) where a file at `path` would replace a manifest, a lock, what is a
// kernel's own, one of `sources`, which are read, or an existing file of the other kind.
void check_output(const std::string& path, OutputKind kind,
                  const std::vector<std::filesystem::path>& sources);

// As check_output; and its folder must be there and writable. The path, absolute.
std::filesystem::path output_file(const std::string& path, OutputKind kind,
                                  const std::vector<std::filesystem::path>& sources);

}  // namespace twinkle::cli
