#pragma once
// A site: a part of a model that may be replaced, the choice for it, and the result.

#include "runtime/graph/function_calls.h"
#include "runtime/graph/keep_reason.h"
#include "runtime/graph/passed_parameters.h"
#include "runtime/graph/sites.h"
#include "runtime/layers/lost_attributes.h"
#include "runtime/plan/job.h"
#include "runtime/proof/binding.h"
#include "runtime/selection/candidates.h"

#include <tl/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace twinkle::runtime {

// An instance, whose forward a layer replaces.
struct LayerSite {
    // Of the instance, before anything in the model has changed: inputs of its forward methods that
    // are parameters of it, and the attributes that tracing has lost.
    std::map<std::string, PassedInputs> passed{};
    LostAttributes lost{};
};

// A call of a function that the code still holds as a call.
struct CallSite {
    bool in_forward = false;  // in the instance's forward, which a layer there replaces
    const torch::jit::Function* in_function = nullptr;  // none: in a method of the instance
};

// A call that a trace has inlined.
struct InlinedCallSite {
    bool in_forward = false;
    std::string method;
    std::size_t function = 0;  // of the mapping
    InlinedPlace place;
    std::size_t nodes = 0;  // of its run
    // How what stands for it is called there, by candidate (Choice::id).
    std::map<const void*, CallBinding> bindings;
};

// A place that computes a formula.
struct PlaceSite {
    bool in_forward = false;
    std::string key;       // equal for the same place in instances that share their code
    std::size_t rank = 0;  // if places overlap, the lower one is replaced
    std::vector<std::int32_t> claimed;  // nodes it would take, in numbers that all places share
    std::vector<std::string> taken;     // paths of the instances that would be called no more
};

// The choices for calls of different sizes, where no candidate is the best of all: by the elements
// of one tensor among the inputs.
struct ChoiceBySize {
    struct Part {
        std::optional<Choice> choice;  // none: the original
        std::int64_t up_to = 0;        // elements; the last part serves all others

        bool operator==(const Part&) const = default;
    };
    std::size_t input = 0;    // of the forward without self, or of the function
    std::vector<Part> parts;  // neighbours differ

    bool operator==(const ChoiceBySize&) const = default;
};

struct Site {
    Instance instance;
    SiteReport report;
    std::variant<LayerSite, CallSite, InlinedCallSite, PlaceSite> what;
    std::vector<Candidate> candidates{};  // in the order of preference
    std::optional<Choice> choice{};       // one of them; none: the original is kept
    // With a choice, which is one of it: calls choose for themselves.
    std::optional<ChoiceBySize> by_size{};
    bool left_out = false;                 // by the options
    bool failed = false;                   // what was chosen could not take its place
    bool outdone = false;                  // a place that overlaps it is to be replaced
    bool absorbed = false;                 // by something around it: nothing else has called it
    std::optional<SiteReport> put_back{};  // its report from when it was replaced
    std::optional<Fallback> forbidden{};   // for which it is kept, though that is not allowed
    std::size_t parts = 0;                 // sites that it has absorbed

    Site(Instance where, SiteReport reported,
         std::variant<LayerSite, CallSite, InlinedCallSite, PlaceSite> kind)
        : instance(std::move(where)), report(std::move(reported)), what(std::move(kind)) {}

    template <typename Kind>
    const Kind* as() const {
        return std::get_if<Kind>(&what);
    }
    template <typename Kind>
    Kind* as() {
        return std::get_if<Kind>(&what);
    }
    bool is_layer() const { return as<LayerSite>() != nullptr; }
    bool is_in_forward() const;
    // A call in a function, not in a method of an instance.
    const torch::jit::Function* function() const;
    // Null: it is none of its candidates.
    Candidate* candidate(const Choice& choice);
    bool serves(const Choice& choice) const;  // is a candidate that can
    // Everything that a call may get but the original, each once.
    std::vector<Choice> choices() const;
    bool is_replaced() const { return report.status == SiteStatus::replaced; }
    // Whether a candidate can serve it, and the user does not want the original.
    bool may_be_replaced() const {
        return !left_out && !put_back && !candidates.empty() && candidates.front().serves();
    }
    // False if another site has taken all of it.
    bool is_reported() const { return !absorbed && !outdone; }

    // Names an absorbed site in this one's reason.
    void add_part(const std::string& name);
};

// `kind`: "layer", "function" or "pattern"; `of`: its name in the report.
SiteReport reported(std::string site, std::string kind, std::string of);

// Records why what was chosen cannot serve the site, which has no choice then.
void refuse(Site& site, const std::string& because);

void keep(const Job& job, Site& site, const KeepReason& reason);

// Chooses the first of these candidates, or keeps the site for their reason.
void choose_from(const Job& job, Site& site, Candidates candidates);

// Records the result of replacing a site by its choice. Throws Error(refused) if that needs a
// fallback that is not allowed.
void enter(const Job& job, Site& site, const tl::expected<void, KeepReason>& result);

// Throws Error(refused) for a site that is kept by a fallback that is not allowed.
void refuse_forbidden(const Site& site);

// The entry of a report, with its candidates.
SiteReport report_of(const Site& site);

// Whether one site lies inside of another, by their paths.
bool is_inside(const std::string& inner, const std::string& outer);

// The name of a site relative to the instance under this path, which holds it.
std::string name_below(const std::string& path, const std::string& site);

}  // namespace twinkle::runtime
