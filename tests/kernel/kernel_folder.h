#pragma once
// Kernels for tests, in the Hub's layout.

#include <algorithm>

#include "base/base64.h"
#include "base/evp.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temp_folder.h"

namespace twinkle::test {

inline base::Json metadata_json(const std::string& name, const std::string& backend) {
    std::string id = name;
    std::replace(id.begin(), id.end(), '-', '_');
    return {{"id", id + "_1f"},
            {"name", name},
            {"version", 1},
            {"license", "Apache-2.0"},
            {"python-depends", base::Json::array()},
            {"backend", {{"type", backend}}}};
}

inline const char* const norm_layers = R"(import torch
from torch import nn


class Norm(nn.Module):
    has_backward = False
    weight: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


class Gate(nn.Module):
    can_torch_compile = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x
)";

// Writes metadata.json with a digest of the present files.
inline void seal(const TempFolder& folder, const std::string& build, base::Json metadata,
                 base::DigestKind kind = base::DigestKind::sha256) {
    base::Json files = base::Json::object();
    for (const std::string& path : base::list_files(folder / build)) {
        if (path != "metadata.json") {
            base::EvpDigest digest(kind);
            digest.update(folder.read(build + "/" + path));
            files[path] = base::to_base64(digest.finish());
        }
    }
    metadata["digest"] = {{"algorithm", kind == base::DigestKind::sha256 ? "sha256" : "sha512"},
                          {"files", files}};
    folder.write(build + "/metadata.json", metadata.dump());
}

inline void write_build(const TempFolder& folder, const std::string& build, const std::string& name,
                        const std::string& backend, const std::vector<std::string>& archs = {}) {
    folder.write(build + "/__init__.py", "from . import layers\n");
    folder.write(build + "/layers.py", norm_layers);
    auto metadata = metadata_json(name, backend);
    if (!archs.empty()) {
        metadata["backend"]["archs"] = archs;
    }
    seal(folder, build, std::move(metadata));
}

}  // namespace twinkle::test
