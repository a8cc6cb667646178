#pragma once
// A model with its plan: find, choose and apply as one object that can be queried in between.

#include "runtime/plan/kernel_code.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/stand_ins.h"

#include <set>
#include <string>

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

    // What is changed of it (replan.h) is for the next copy.
    Plan& plan() { return plan_; }

    // Applies the plan to the model, once. The plan itself does not change.
    Report apply();

    // Once it is applied: the sites whose chosen candidate could not take its place.
    const std::set<std::string>& failed() const { return failed_; }

private:
    Job job_;
    Report report_;  // all but the sites
    KernelCode code_;
    StandIns stand_ins_;
    Plan plan_;
    std::set<std::string> failed_;
};

// Adds the entries of a plan's sites.
void add_sites(Report& report, const Plan& plan);

}  // namespace twinkle::runtime
