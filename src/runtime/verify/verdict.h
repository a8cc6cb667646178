#pragma once
// What verification finds of a site or of a whole model.

#include "base/json.h"
#include "runtime/verify/comparison.h"
#include "runtime/verify/timing.h"
#include "twinkle/report.h"

#include <cstddef>
#include <string>
#include <vector>

namespace twinkle::runtime {

// A replaced site in calls of about one size.
struct SizeVerdict {
    bool compared = false;
    std::string problem;  // why it is not right; empty: nothing is wrong
    Samples times;        // of the original and of the kernelized; empty: not measured
};

struct Verdict {
    bool right = false;
    std::string because;  // why not, or what limits the verdict
    bool reached = true;  // the inputs led through the site at all
    bool ran = false;     // it gave a result for every call that was compared
    Comparison comparison;
    std::size_t calls = 0;  // that were compared, and make up one run of what was measured
    Samples times;          // of the original and of the kernelized; empty: not measured
    // Where sizes are judged apart (VerificationContext::by_size), by bound; it is right if it is
    // right in any of them.
    std::vector<SizeVerdict> by_size{};
};

// As a child sends it to its parent. A text from the child is printable afterwards.
base::Json to_json(const Verdict& verdict);
Verdict verdict_from_json(const base::Json& json);

// Fills a report entry from a verdict.
void enter(const Verdict& verdict, SiteReport& site);

}  // namespace twinkle::runtime
