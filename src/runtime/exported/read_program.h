#pragma once
// From the JSON of an archive to the program.

#include "archive/archive.h"
#include "runtime/exported/program.h"

namespace twinkle::runtime::exported {

// The model of this name; of an archive with one model, an empty name will do. What newer minor
// versions have added is passed over where the program does not use it. Throws Error(not_found) if
// there is no such model (the archive's are named), Error(malformed) for a program that contradicts
// itself: values that are not defined, or twice.
Program read_program(const archive::Archive& archive, const std::string& model);

// The name that is meant, as above.
std::string chosen_model(const archive::Archive& archive, const std::string& model);

}  // namespace twinkle::runtime::exported
