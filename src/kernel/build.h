#pragma once
// A kernel on disk: a folder with one build, with several, or a plain Python package.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/layers.h"
#include "kernel/metadata.h"
#include "twinkle/mapping.h"

namespace twinkle::kernel {

enum class FolderKind {
    build,       // has metadata.json
    repository,  // has build/<variant>/…, or <variant>/…
    package,     // has __init__.py only: source for every machine
};

struct KernelFolder {
    FolderKind kind = FolderKind::package;
    std::filesystem::path path;
    std::filesystem::path builds;       // of a repository: the folder that holds the variants
    std::vector<std::string> variants;  // of a repository: sorted; every folder there
};

// Throws Error(not_found) if there is no such folder, Error(malformed) if it is none of the three.
KernelFolder open_kernel_folder(const std::filesystem::path& path);

// A build whose every file was read once: hashed, held against the digest, searched for operators.
struct Build {
    std::filesystem::path path;
    std::optional<Metadata> metadata;  // none: a plain Python package
    std::filesystem::path package;     // the folder of __init__.py
    std::vector<MappedFile> files;     // sorted by path; without bytecode
    PackageSources sources;            // of the package
    std::vector<MappedOperator> operators;
};

// Throws Error(verification) with every violation where a digest does not fit, Error(malformed) for
// broken metadata or a build without a package.
Build read_build(const std::filesystem::path& folder);

}  // namespace twinkle::kernel
