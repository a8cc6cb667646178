#pragma once
// A kernel on disk: a folder with one build, with several, or a plain Python package.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/compiled_operator.h"
#include "kernel/layers.h"
#include "kernel/metadata.h"
#include "kernel/verdict.h"
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

struct BuildLibrary {
    std::string path;  // relative to the build
    binary::Library library;
    std::vector<std::string> whole_schemas;  // names of operators whose schema stands in it
    std::vector<std::string> dispatch_keys;  // for some of which they are registered
};

// A file that AOTInductor compiled, and the operator that it computes.
struct BuildPackage {
    std::string path;  // relative to the build
    OperatorPackage package;
};

// A build whose every file was read once: hashed, held against the digest, searched for operators.
struct Build {
    std::filesystem::path path;
    std::optional<Metadata> metadata;  // none: a plain Python package
    std::filesystem::path package;     // the folder of __init__.py
    std::vector<MappedFile> files;     // sorted by path; without bytecode
    PackageSources sources;            // of the package
    std::vector<MappedOperator> operators;
    std::vector<BuildLibrary> libraries;  // without files that only look like one
    PythonNeeds python_needs;             // of the libraries
    std::vector<BuildPackage> packages;   // sorted by path
    bool has_code() const;                // files that register operators
};

// Throws Error(verification) with every violation where a digest does not fit, Error(malformed) for
// broken metadata or a build without a package.
Build read_build(const std::filesystem::path& folder);

// A package (.pt2) that is a kernel by itself, as a build of one file: its namespace, sources and
// operator come from it. None: it says nothing of an operator. Throws as read_build does.
std::optional<Build> read_package_file(const std::filesystem::path& file);
bool is_package(std::string_view path);
inline constexpr std::string_view package_variant = "package";  // what stands for its variant
bool is_package_file(const MappedKernel& kernel);
// The build that a mapping names, as it is now, of either kind. Throws as read_build does.
Build read_mapped_build(const MappedKernel& kernel);
// Return for a package that is a kernel by itself the namespace of its operator, which no other
// file has, and the Python package that binds it.
std::string package_namespace(std::string_view sha256);
PackageSources package_file_sources(const CompiledOperator& op, const std::string& op_namespace);

// The parts of read_build, for those who go on where something is wrong.
struct BuildFiles {
    std::vector<MappedFile> files;               // sorted by path; without bytecode
    std::map<std::string, std::string> digests;  // raw, by SHA-256 or, if asked for, SHA-512
    PackageSources sources;                      // every .py, by its path in the build
};
BuildFiles read_build_files(const std::filesystem::path& folder, bool with_sha512);
// The folder of the package in a build: "" for the build itself or, in older ones, "name/".
std::optional<std::string> package_prefix(const PackageSources& sources, const std::string& name);
PackageSources package_sources(const PackageSources& sources, const std::string& prefix);
bool is_library(std::string_view path);
// Adds what a library is, its operators and what it needs of Python.
void read_library_of(Build& build, const std::string& path);

}  // namespace twinkle::kernel
