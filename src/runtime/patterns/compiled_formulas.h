#pragma once
// Formulas by their source, compiled once in a process: one kernelize asks for them several times,
// and so does every other one that uses the same preset.

#include "runtime/patterns/formula.h"

#include <memory>
#include <string>

namespace twinkle::runtime {

using CompiledFormula = tl::expected<std::shared_ptr<const Formula>, std::string>;

// The function `name` in the text of a file. The error says why it is no formula.
CompiledFormula compiled_formula(const std::string& file, const std::string& source,
                                 const std::string& name);

}  // namespace twinkle::runtime
