#pragma once
// Who is asked for the operators of a build that its files do not show: a compiler may have split
// the text of a schema, and then only loading the library tells. Nothing in this folder loads one.

#include "twinkle/mapping.h"

#include <tl/expected.hpp>

#include <functional>
#include <string>
#include <vector>

namespace twinkle::project {

// All operators that the build's libraries register; or why they are not known. Null: nobody can be
// asked.
using AskOperators =
    std::function<tl::expected<std::vector<MappedOperator>, std::string>(const MappedKernel&)>;

}  // namespace twinkle::project
