#pragma once
// kernelize --choices: the labels of a model that was kernelized before say what serves the sites
// of its original again, and nothing is measured.

#include "runtime/plan/plan.h"
#include "twinkle/labels.h"
#include "twinkle/report.h"

#include <map>
#include <string>
#include <vector>

namespace twinkle::worker {

class GivenChoices {
public:
    // Throws Error(malformed) for a text without labels.
    GivenChoices(const std::string& text, bool strict);

    // To a plan that was not applied yet. A site that no label names keeps its original, and so
    // does one whose candidate is not there, with a warning. Throws Error: malformed, if these are
    // labels of another model; refused (strict), if a candidate is not there.
    void apply(runtime::Plan& plan);
    // Says in the report of the model that was made so what its calls get.
    void enter(Report& report, runtime::Plan& plan) const;

private:
    void choose(runtime::Plan& plan, runtime::Site& site, const Label& label);
    void refuse(const std::string& site, const std::string& why);

    bool strict_;
    std::map<std::string, Label> labels_;  // by site
    std::vector<std::string> warnings_;
};

}  // namespace twinkle::worker
