#include "runtime/prepack/prepack_operators.h"

#include "runtime/kernels/loaded_kernels.h"
#include "runtime/kernels/operator_facts.h"

#include <optional>
#include <string>
#include <string_view>

namespace twinkle::runtime {

namespace {

std::optional<PrepackOperator> matched(const c10::OperatorHandle& f,
                                       const c10::OperatorHandle& prepack) {
    const std::vector<c10::Argument>& taken = prepack.schema().arguments();
    const auto weight = f.schema().argumentIndexWithName("weight");
    if (!weight || taken.empty() || taken[0].name() != "weight" ||
        prepack.schema().returns().size() != 1) {
        return std::nullopt;
    }
    PrepackOperator found{prepack, static_cast<std::size_t>(*weight)};
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
            if (const auto found = f && prepack ? matched(*f, *prepack) : std::nullopt) {
                all.emplace(c10::Symbol::fromQualString(of), *found);
            }
        }
    }
    return all;
}

}  // namespace twinkle::runtime
