#pragma once
// Replaces the places of patterns by calls.

#include "runtime/plan/holders.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/stand_ins.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace twinkle::runtime {

// A layer takes precedence over a pattern inside of it. So patterns that hold layers are replaced
// before layers, and patterns inside layers after them, where no layer could be replaced.
class PlaceReplacer {
public:
    PlaceReplacer(const Job& job, Plan& plan, StandIns& stand_ins, Holders& holders)
        : job_(job), plan_(plan), stand_ins_(stand_ins), holders_(holders) {}

    void replace_outside_layers() { replace(false); }
    // Layers have changed the graphs: places are found again, and identified by where they are.
    void replace_rest() {
        plan_.places.reset();
        replace(true);
    }

private:
    using Found = std::vector<std::pair<Site*, const PatternSite*>>;

    void replace(bool in_layers);
    bool is_in_chosen_layer(const Site& site) const;
    void choose_layouts(const std::vector<Site*>& chosen);
    void put_stand_ins(const Found& found);

    const Job& job_;
    Plan& plan_;
    StandIns& stand_ins_;
    Holders& holders_;
    // Results of replacing places, by key: instances of a class share them.
    std::map<std::string, tl::expected<void, KeepReason>> done_;
};

}  // namespace twinkle::runtime
