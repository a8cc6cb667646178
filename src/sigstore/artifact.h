#pragma once
// The signed content, by its hashes: a file is streamed, at most once for each hash.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "sigstore/hash.h"

namespace twinkle::sigstore {

class Artifact {
public:
    virtual ~Artifact() = default;
    virtual std::string hash(HashAlgorithm algorithm) const = 0;  // raw
    virtual std::string bytes() const = 0;  // only asked for where the key is one for Ed25519
};

class ArtifactBytes : public Artifact {
public:
    explicit ArtifactBytes(std::string_view bytes) : bytes_(bytes) {}
    std::string hash(HashAlgorithm algorithm) const override {
        return sigstore::hash(algorithm, bytes_);
    }
    std::string bytes() const override { return std::string(bytes_); }

private:
    std::string_view bytes_;
};

class ArtifactFile : public Artifact {
public:
    explicit ArtifactFile(std::filesystem::path path) : path_(std::move(path)) {}
    std::string hash(HashAlgorithm algorithm) const override;
    std::string bytes() const override;  // Error(malformed) above 1 GiB

private:
    std::filesystem::path path_;
    mutable std::map<HashAlgorithm, std::string> hashes_;
};

}  // namespace twinkle::sigstore
