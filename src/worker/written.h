#pragma once
// The files that a command has written, for the command line to check that they exist.

#include "base/json.h"
#include "base/sha256.h"

namespace twinkle::worker {

inline base::Json written(const base::FileHash& file) {
    return {{"size", file.size}, {"sha256", file.sha256}};
}

}  // namespace twinkle::worker
