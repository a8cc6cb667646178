#pragma once
// What a command has written, for the command line to see that it is there.

#include "base/json.h"
#include "base/sha256.h"

namespace twinkle::worker {

inline base::Json written(const base::FileHash& file) {
    return {{"size", file.size}, {"sha256", file.sha256}};
}

}  // namespace twinkle::worker
