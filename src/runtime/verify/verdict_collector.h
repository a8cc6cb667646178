#pragma once
// The parent's half of verification: collects what a child sends, and blames the site during which
// it died.

#include "runtime/verify/sized_calls.h"
#include "runtime/verify/verdict.h"
#include "runtime/verify/verification_context.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

struct VerdictCollector {
    std::map<std::string, Verdict> verdicts;
    std::optional<std::string> current;
    std::string size;  // in which it is being run
    SizesTried sizes;
    std::vector<std::string> timing;  // sites that were being measured together
    std::set<std::string> timed;      // of which nothing more was to be measured

    // Reads a line that the child has sent. Throws Error where it is none of verification's.
    void take(std::string_view line);
    // Drops verdicts of sites that were right but not measured, because the child ended first.
    // These sites are judged again.
    void drop_unmeasured(const VerificationContext& context);
    // The child has died, which is the verdict of the site that was being run. Of several that were
    // being measured together one is to blame: each is tried again, alone (context.apart). True: a
    // site is to be tried again.
    bool blame(VerificationContext& context, const std::string& why);
    bool has_wrong() const;

private:
    void take_times(const base::Json& json);
};

}  // namespace twinkle::runtime
