#pragma once
// The tuning.toml of builds, each read once.

#include "tuning/declaration.h"
#include "twinkle/mapping.h"

#include <map>
#include <string>

namespace twinkle::worker {

class Declarations {
public:
    // Empty where the build has none. Throws Error(malformed).
    const tuning::Declaration& of(const MappedKernel& kernel);

private:
    std::map<std::string, tuning::Declaration> known_;  // by build
};

}  // namespace twinkle::worker
