#include "runtime/prepack/prepack_operators.h"

#include "runtime/kernels/loaded_kernels.h"
#include "runtime/kernels/operator_facts.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace twinkle::runtime {

namespace {

constexpr std::string_view weight_name = "weight";

// Allows a number behind it, and another word in front of it.
bool names_weight(std::string_view name) {
    while (!name.empty() && name.back() >= '0' && name.back() <= '9') {
        name.remove_suffix(1);
    }
    return name == weight_name || name.ends_with("_weight");
}

std::vector<std::size_t> weights_of(const c10::FunctionSchema& schema) {
    if (const auto one = schema.argumentIndexWithName(weight_name)) {
        return {static_cast<std::size_t>(*one)};
    }
    std::vector<std::size_t> weights;
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
        if (names_weight(schema.arguments()[i].name())) {
            weights.push_back(i);
        }
    }
    return weights;
}

std::optional<PrepackOperator> matched(const c10::OperatorHandle& f,
                                       const c10::OperatorHandle& prepack) {
    const std::vector<c10::Argument>& taken = prepack.schema().arguments();
    if (taken.empty() || taken[0].name() != weight_name || prepack.schema().returns().size() != 1) {
        return std::nullopt;
    }
    PrepackOperator found{prepack, weights_of(f.schema())};
    for (std::size_t i = 1; i < taken.size(); ++i) {
        const auto at = f.schema().argumentIndexWithName(taken[i].name());
        if (!at) {
            return std::nullopt;
        }
        found.arguments.push_back(static_cast<std::size_t>(*at));
    }
    return found;
}

}  // namespace

bool PrepackOperator::is_weight(std::size_t argument) const {
    return std::find(weights.begin(), weights.end(), argument) != weights.end();
}

PrepackOperators prepack_operators() {
    constexpr std::string_view suffix = "_prepack";
    PrepackOperators all;
    for (const auto& kernel : loaded_kernels()) {
        const std::string& space = kernel->kernel.op_namespace;
        for (const OperatorFacts& facts : operators_of(space)) {
            if (!facts.name.ends_with(suffix)) {
                continue;
            }
            const std::string full = space + "::" + facts.name;
            const std::string of = full.substr(0, full.size() - suffix.size());
            auto& dispatcher = c10::Dispatcher::singleton();
            const auto f = dispatcher.findSchema({of, ""});
            const auto prepack = dispatcher.findSchema({full, ""});
            if (const auto found = f && prepack ? matched(*f, *prepack) : std::nullopt;
                found && !found->weights.empty()) {
                all.emplace(c10::Symbol::fromQualString(of), *found);
            }
        }
    }
    return all;
}

}  // namespace twinkle::runtime
