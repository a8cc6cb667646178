#pragma once
// A model with its plan: find, choose and apply as one object that can be queried in between.

#include "runtime/plan/kernel_code.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/stand_ins.h"
#include "runtime/prepare/prepared_weights.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace twinkle::runtime {

class PlannedModel {
public:
    // Converts the job's model as its options ask, and makes the plan; the layers do not change
    // yet. Throws Error as kernelize does.
    explicit PlannedModel(const Job& job);
    // Reuses the plan of `other` for another copy of its model, read from the same file.
    PlannedModel(const Job& job, const PlannedModel& other);
    PlannedModel(const PlannedModel&) = delete;
    PlannedModel& operator=(const PlannedModel&) = delete;

    // What is changed of it (replan.h) before it is applied is applied; later it is for the next
    // copy.
    Plan& plan() { return plan_; }
    // The model is kernelized for it: cpu, cuda, …
    const std::string& device() const { return report_.device; }

    // Applies the plan to the model, once. The plan itself does not change.
    Report apply();

    // Once it is applied: the sites whose chosen candidate could not take its place.
    const std::set<std::string>& failed() const { return failed_; }
    // The sites whose layer could not prepare its weights, with the reasons: the model must be made
    // again without it.
    const std::map<std::string, std::string>& unprepared() const { return unprepared_; }

private:
    // Prepared weights, by the path of the instance and the Choice::id that made them.
    using Prepared = std::map<std::pair<std::string, const void*>, NamedTensors>;

    void prepare(const std::vector<Site>& sites);

    Job job_;
    Report report_;  // all but the sites
    KernelCode code_;
    StandIns stand_ins_;
    Plan plan_;
    std::set<std::string> failed_;
    std::map<std::string, std::string> unprepared_;
    // Copies of a model share them.
    std::shared_ptr<Prepared> prepared_ = std::make_shared<Prepared>();
};

// Adds the entries of a plan's sites.
void add_sites(Report& report, const Plan& plan);

}  // namespace twinkle::runtime
