#pragma once
// metadata.json: what a build says of itself.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "target/backend.h"

namespace twinkle::kernel {

struct Digest {
    std::string algorithm;                     // sha256, sha512
    std::map<std::string, std::string> files;  // POSIX path → padded base64
};

struct KernelDependency {
    std::string repo_id;
    std::optional<std::uint32_t> version;  // either this …
    std::string revision;                  // … or this
};

struct GitState {
    std::string commit;
    bool dirty = false;
};

struct Provenance {
    std::string builder_version;
    std::optional<GitState> builder;
    std::optional<GitState> kernel;
    bool dirty() const { return (builder && builder->dirty) || (kernel && kernel->dirty); }
};

struct Metadata {
    std::string id;    // the operator namespace: torch.ops.<id>
    std::string name;  // "layer-norm"
    std::uint32_t version = 0;
    std::string license;
    std::vector<std::string> python_depends;
    target::BackendKind backend = target::BackendKind::cpu;
    std::vector<std::string> archs;
    std::optional<Digest> digest;
    std::string kernels_minver;  // empty: not given
    std::vector<KernelDependency> kernel_depends;
    std::string upstream;
    std::string source;
    std::optional<Provenance> provenance;

    std::string package_name() const;  // "layer_norm"
};

// Unknown keys are ignored; a missing or malformed known one, and any duplicate, is
// Error(malformed).
Metadata parse_metadata(std::string_view json, std::string_view origin);
Metadata read_metadata(const std::filesystem::path& file);

}  // namespace twinkle::kernel
