#pragma once
// Times and speedups of a report: as text for tables and drawings, and those of several sites
// together.

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/terminal.h"

namespace twinkle::cli {

struct Times {
    double median = 0;  // microseconds
    double lower = 0;   // the quartiles
    double upper = 0;
};

// None: not measured.
std::optional<Times> times_of(const base::Json& object, const char* key);

std::string time_text(const std::optional<double>& microseconds);  // "353 us", "1.81 ms"

// "353 us ±2%": the median, and half the interquartile range. Not measured: "".
std::string spread_text(const std::optional<Times>& times);

// "2.41x", "no difference", "too few runs to tell"; empty: not measured.
std::string speedup_text(const base::Json& speedup);
base::Style speedup_style(const base::Json& speedup);

// Says of a whole model "1.31x the original", on a busy machine "perhaps 1.31x the original"; where
// neither is surely faster, what speedup_text() says.
std::string whole_speedup_text(const base::Json& whole);

// Adds to `summary` "original_us", "kernelized_us" and "speedup" of these sites together, in the
// form that a site has them. Sites that were not measured count for nothing.
void add_times_together(const std::vector<const base::Json*>& sites, base::Json& summary);

}  // namespace twinkle::cli
