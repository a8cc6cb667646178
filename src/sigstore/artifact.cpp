#include "sigstore/artifact.h"

#include "base/file.h"

namespace twinkle::sigstore {

std::string ArtifactFile::hash(HashAlgorithm algorithm) const {
    auto [known, fresh] = hashes_.try_emplace(algorithm);
    if (fresh) {
        base::EvpDigest digest(algorithm);
        base::stream_file(path_, "artifact", [&](std::string_view part) { digest.update(part); });
        known->second = digest.finish();
    }
    return known->second;
}

std::string ArtifactFile::bytes() const {
    return base::read_file(path_, "artifact", 1u << 30);
}

}  // namespace twinkle::sigstore
