#pragma once
// The report of bench, as tables for a person.

#include <string>

#include "base/json.h"

namespace twinkle::cli {

// `report`: schema twinkle.bench/1, from the worker. The sites, the whole models, and what they ran
// on. `each`: a line for every site, not for those that are alike. `columns` 0: as wide as it needs
// to be.
std::string bench_tables(const base::Json& report, bool each, std::size_t columns, bool color);

// How many times as fast one of the models is as another; an empty object: not measured.
const base::Json& speedup_between(const base::Json& report, const std::string& of,
                                  const std::string& over);

// "AMD EPYC 9B14; 2 threads on 2 cores; LibTorch 2.13.0 (AVX512); a run is forward".
std::string machine_text(const base::Json& report);

}  // namespace twinkle::cli
