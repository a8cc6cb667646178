#include "kernel/digest.h"

#include "base/base64.h"
#include "base/text.h"

namespace twinkle::kernel {

bool is_bytecode(std::string_view path) {
    return path.ends_with(".pyc") || path.starts_with("__pycache__/") ||
           path.find("/__pycache__/") != std::string_view::npos;
}

bool is_outside_digest(std::string_view path) {
    return path == "metadata.json" || path == "metadata.json.sigstore" || is_bytecode(path);
}

std::vector<std::string> digest_violations(const Digest& digest,
                                           const std::map<std::string, std::string>& found) {
    std::vector<std::string> violations;
    for (const auto& [path, expected] : digest.files) {
        const auto file = found.find(path);
        if (file == found.end()) {
            violations.push_back(base::printable(path) + " is missing");
        } else if (const std::string got = base::to_base64(file->second); got != expected) {
            violations.push_back(base::printable(path) + " differs: " + digest.algorithm + " is " +
                                 got + ", not " + base::printable(expected));
        }
    }
    for (const auto& [path, hash] : found) {
        if (!is_outside_digest(path) && !digest.files.contains(path)) {
            violations.push_back(base::printable(path) + " is not in the digest");
        }
    }
    return violations;
}

}  // namespace twinkle::kernel
