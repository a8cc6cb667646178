#pragma once
// The file that a command has written, for the command line to check that it is the one there.

#include "base/file_identity.h"
#include "base/json.h"

#include <filesystem>

namespace twinkle::worker {

inline base::Json written(const std::filesystem::path& file) {
    const auto identity = base::identity_of(file);
    return identity ? base::Json(identity->text) : base::Json();
}

}  // namespace twinkle::worker
