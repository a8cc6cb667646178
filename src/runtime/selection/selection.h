#pragma once
// The choice for a site and for which machine, and the bindings that concern an instance.

#include "runtime/graph/sites.h"
#include "runtime/layers/lost_attributes.h"
#include "twinkle/kernelize.h"
#include "twinkle/tuning_config.h"

#include <optional>
#include <set>
#include <string>
#include <variant>

namespace twinkle::runtime {

// A binding of the mapping, and its chosen candidate.
struct LayerChoice {
    const MappedLayer* binding = nullptr;
    const LayerCandidate* candidate = nullptr;

    bool operator==(const LayerChoice&) const = default;
};
struct FunctionChoice {
    const MappedFunction* binding = nullptr;
    const FunctionCandidate* candidate = nullptr;

    bool operator==(const FunctionChoice&) const = default;
};
struct PatternChoice {
    const MappedPattern* binding = nullptr;
    const FunctionCandidate* candidate = nullptr;

    bool operator==(const PatternChoice&) const = default;
};

struct Choice {
    std::variant<LayerChoice, FunctionChoice, PatternChoice> of;
    const MappedKernel* kernel = nullptr;  // none: a file of the user's, or an operator
    CfgFields cfg{};  // keyword arguments of its operators; empty: what they are without

    bool operator==(const Choice&) const = default;

    template <typename Kind>
    const Kind* as() const {
        return std::get_if<Kind>(&of);
    }
    // The candidate in its mapping: equal for no two, even of one kernel. What is configured in
    // another way has the same.
    const void* id() const;
    std::string cfg_text() const;  // stable JSON; empty: it is not configured
    // The candidate for a function or a pattern; null for a layer.
    const FunctionCandidate* implementation() const;
    std::string bound_name() const;  // "RMSNorm", "silu_and_mul", "add_rms_norm"
    const std::string& mode() const;
    // Names that of a layer that is coarser than the model; empty: it is as exact as the original.
    const std::string& precision() const;
    // "twinkle-pack: RMSNorm", "my.py: silu", "a C++ function of this program"; "twinkle-pack:
    // Linear (way=2)".
    std::string describe() const;
    std::string describe_candidate() const;  // without its configuration
};

struct SelectionContext {
    std::string mode;                    // normalized
    std::string device;                  // cpu, cuda, …
    std::optional<int> capability;       // major * 10 + minor
    std::set<std::string> precisions{};  // coarser ones that are asked for
};

// Whether the binding names this class.
bool binds(const MappedLayer& layer, const std::string& class_name);

// Checks a binding's conditions on one instance: its path, attributes and submodules. Nothing: they
// hold.
std::optional<std::string> unmet_condition(const MappedLayer& layer, const Instance& instance,
                                           const LostAttributes& lost);

}  // namespace twinkle::runtime
