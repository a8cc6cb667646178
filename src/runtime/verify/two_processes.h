#pragma once
// What two processes have measured of the same sites, as one: where in memory a process's models
// come to lie, and on which cores its threads wake, decides about a tenth, as long as it lives.

#include "runtime/verify/verdict.h"

#include <map>
#include <string>

namespace twinkle::runtime {

// Adds the times of the second, turn by turn; a problem that only the second has found counts.
void add_measured(std::map<std::string, Verdict>& verdicts,
                  const std::map<std::string, Verdict>& again);

}  // namespace twinkle::runtime
