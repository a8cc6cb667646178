#pragma once
// A model with the plan for it: find, choose and apply, as one thing that can be asked in between.

#include "runtime/plan/kernel_code.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/stand_ins.h"

namespace twinkle::runtime {

class PlannedModel {
public:
    // Converts the job's model as its options ask, and makes the plan; its layers are as they were.
    // Throws Error as kernelize does.
    explicit PlannedModel(const Job& job);
    // The plan of `other` for another copy of its model, read from the same file.
    PlannedModel(const Job& job, const PlannedModel& other);
    PlannedModel(const PlannedModel&) = delete;
    PlannedModel& operator=(const PlannedModel&) = delete;

    // What is changed of it (replan.h) is for the next copy.
    Plan& plan() { return plan_; }

    // Does to the model what the plan says, once. The plan stays as it was made.
    Report apply();

private:
    Job job_;
    Report report_;  // all but the sites
    KernelCode code_;
    StandIns stand_ins_;
    Plan plan_;
};

// The entries of a plan's sites.
void add_sites(Report& report, const Plan& plan);

}  // namespace twinkle::runtime
