#pragma once
// A formula that is looked for in the graphs of models: a small Python function, compiled.

#include "runtime/patterns/flat_graph.h"
#include "runtime/source/package_values.h"

#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct FormulaParameter {
    std::string name;
    c10::TypePtr type;
    ValueId value = nothing;
    // The value of a parameter that the formula itself does not use.
    std::optional<c10::IValue> fixed;
};

struct Formula {
    std::string name;
    FlatGraph graph;
    std::vector<FormulaParameter> parameters;
    std::vector<ValueId> results;
    std::vector<std::size_t> parameter_of;  // by value; none: npos
    // The rarest operator tells where to look: from a node of it, these users lead to the first
    // result.
    std::vector<c10::Symbol> ops;  // every one that is needed

    static constexpr std::size_t npos = static_cast<std::size_t>(-1);
};

// `name` in the module of the compilation's package. The error says why it is no formula.
tl::expected<Formula, std::string> compile_formula(Compilation& compilation,
                                                   const std::string& module,
                                                   const std::string& name);

}  // namespace twinkle::runtime
