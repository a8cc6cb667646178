#pragma once
// kernelize --choices: the labels of a model that was kernelized before say what serves the sites
// of its original again, and nothing is measured.

#include "runtime/plan/plan.h"
#include "twinkle/labels.h"
#include "twinkle/report.h"
#include "worker/declarations.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace twinkle::worker {

class GivenChoices {
public:
    // Throws Error(malformed) for a text without labels, or with two of one site.
    GivenChoices(const std::string& text, bool strict);

    // Applies them to a plan that was not applied yet, for a device (cpu, cuda, …). A site that no
    // label names keeps its original, and so does one whose candidate is not there, with a warning.
    // One that the options leave out is left out. Throws Error: malformed, if these are labels of
    // another model; refused (strict), if a candidate is not there.
    void apply(runtime::Plan& plan, const std::string& device);
    // Says in the report of the model that was made so what its calls get.
    void enter(Report& report, runtime::Plan& plan) const;

private:
    using Reasons = std::map<std::string, std::vector<std::string>>;  // each with its sites

    void choose(runtime::Plan& plan, runtime::Site& site, const Label& label);
    std::optional<runtime::Choice> candidate_for(const runtime::Site& site,
                                                 const Label::Served& served);
    // Why no operator of the kernel's build takes a configuration, by its tuning.toml. Empty: one
    // does.
    std::string undeclared(const MappedKernel& kernel, const CfgFields& cfg);
    // Why no candidate of the site is what the label names.
    std::string absent(const runtime::Site& site, const Label::Served& served);
    void refuse(const std::string& site, const std::string& why);
    // One for all sites with the same reason.
    static std::vector<std::string> warnings(const Reasons& reasons);

    bool strict_;
    tuning::Properties known_;             // of all calls
    std::map<std::string, Label> labels_;  // by site
    Declarations declarations_;
    Reasons refused_;
    std::set<std::string> refused_sites_;
};

}  // namespace twinkle::worker
