#pragma once
// Output files whose path the user gives: none may replace an input, or another kind of file.
// Checked before any work begins.

#include <filesystem>
#include <string>
#include <vector>

namespace twinkle::cli {

enum class OutputKind {
    tensors,  // a model, or what it computes
    text,     // a mapping, a report, a drawing
};

// Throws Error(malformed) if a file at `path` would replace a manifest, a lock, a kernel's own
// file, one of `sources`, which are read, or an existing file of the other kind.
void check_output(const std::string& path, OutputKind kind,
                  const std::vector<std::filesystem::path>& sources);

// The same, and the folder must exist and be writable. Returns the absolute path.
std::filesystem::path output_file(const std::string& path, OutputKind kind,
                                  const std::vector<std::filesystem::path>& sources);

// Throws Error(malformed) if `output` is "-", standard output, which --json wants, too.
void check_standard_output(const std::string& output, bool json);

}  // namespace twinkle::cli
