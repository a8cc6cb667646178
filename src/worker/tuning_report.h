#pragma once
// What was measured of a site, and what its calls get, in words and for the report.

#include "tuning/choice_by_size.h"
#include "twinkle/report.h"
#include "worker/sized_site.h"

#include <set>
#include <string>
#include <vector>

namespace twinkle::worker {

// "0.52 times as fast as the original here", "0.52 to 1.4 times …, with 1 to 512 rows"; empty: it
// was not measured. Candidates are numbered as in MeasuredSize.
std::string speed_text(const std::vector<tuning::MeasuredSize>& sizes, std::size_t candidate);

// Completes the reason why a site is replaced: how fast what was chosen is, or what serves which
// sizes.
std::string because_of(const std::vector<tuning::SizePart>& parts,
                       const std::vector<tuning::MeasuredSize>& sizes, const SizedSite& site);

std::vector<SizeChoiceReport> parts_report(const std::vector<tuning::SizePart>& parts,
                                           const SizedSite& site);
// Adds what it tells to `told`.
std::vector<SizeTimeReport> measured_report(const std::vector<tuning::MeasuredSize>& sizes,
                                            const SizedSite& site, const Measurements& known,
                                            std::set<const tuning::Entry*>& told);

}  // namespace twinkle::worker
