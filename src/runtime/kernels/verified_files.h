#pragma once
// The files of a kernel build, read once: hashed as they are read, and used from that very copy, so
// that nobody can exchange a file between the check and its use.

#include "base/unique_fd.h"
#include "kernel/compiled_operator.h"
#include "twinkle/mapping.h"

#include <map>
#include <optional>
#include <string>

namespace twinkle::runtime {

// An open sealed memory file holding the checked bytes of a shared library.
struct SealedLibrary {
    std::string path;  // within the kernel
    base::UniqueFd descriptor;
};

// The library in a package that AOTInductor compiled for a machine like this one.
struct SealedPackage {
    kernel::OperatorPackage facts;
    SealedLibrary library;
};

// What of a kernel registers operators.
struct SealedCode {
    std::vector<SealedLibrary> libraries;  // every .so
    std::vector<SealedPackage> packages;   // the more particular first: newer GPU, more features
    bool empty() const { return libraries.empty() && packages.empty(); }
};

struct VerifiedFiles {
    std::map<std::string, std::string> sources;  // path → text, of every .py
    SealedCode code;
};

// A kernel that is a package by itself has the sources that its package means.
// Every file of kernel.files must be there with its size and hash: Error(verification) names the
// first that differs, Error(not_found) the first that is missing. Files that the mapping does not
// name are ignored: nothing reads them. Error(refused) for a kernel of packages none of which runs
// on this machine.
VerifiedFiles read_verified(const MappedKernel& kernel);

// One file, checked in the same way; none: the build has none of that name.
std::optional<std::string> read_verified_file(const MappedKernel& kernel, const std::string& path);

// The sources alone, checked in the same way; the other files are not read.
std::map<std::string, std::string> read_verified_sources(const MappedKernel& kernel);

}  // namespace twinkle::runtime
