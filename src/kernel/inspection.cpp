#include "kernel/inspection.h"

#include <algorithm>
#include <set>

#include "kernel/operators.h"
#include "kernel/schema.h"

namespace twinkle::kernel {
namespace {

std::vector<OperatorFacts> operator_facts(const Build& build) {
    std::set<std::string> keys;
    std::set<std::string> whole;
    for (const BuildLibrary& library : build.libraries) {
        keys.insert(library.dispatch_keys.begin(), library.dispatch_keys.end());
        whole.insert(library.whole_schemas.begin(), library.whole_schemas.end());
    }
    std::vector<OperatorFacts> facts;
    for (const MappedOperator& op : build.operators) {
        OperatorFacts fact{op.name,
                           op.schema,
                           {},
                           {keys.begin(), keys.end()},
                           build.libraries.empty() || whole.contains(op.name)};
        if (const auto schema = parse_schema(op.schema)) {
            fact.mutates = schema->mutates;
        }
        facts.push_back(std::move(fact));
    }
    return facts;
}

void add_problems(std::vector<Problem>& to, const std::vector<Problem>& from) {
    for (const Problem& problem : from) {
        const auto same = [&](const Problem& other) {
            return other.message() == problem.message();
        };
        if (std::none_of(to.begin(), to.end(), same)) {
            to.push_back(problem);
        }
    }
}

}  // namespace

Inspection inspect_build(const std::filesystem::path& folder) {
    return inspect_build(read_build(folder));
}

Inspection inspect_build(Build build) {
    Inspection result;
    result.operators = operator_facts(build);
    LayerList layers = read_layers(build.sources);
    for (LayerSource& layer : layers.layers) {
        Verdict verdict = judge(layer, build.python_needs);
        result.layers.push_back({std::move(layer), std::move(verdict)});
    }
    FunctionList functions = read_functions(build.sources);
    for (FunctionSource& function : functions.functions) {
        Verdict verdict = judge(function.usage, build.python_needs);
        result.functions.push_back({std::move(function), std::move(verdict)});
    }
    add_problems(result.problems, layers.problems);
    add_problems(result.problems, functions.problems);
    std::vector<binary::DeviceCode> code;
    for (const BuildLibrary& library : build.libraries) {
        const auto& list = library.library.device_code;
        code.insert(code.end(), list.entries.begin(), list.entries.end());
        result.operators_complete =
            result.operators_complete && !defines_operators(library.library);
        result.archs_complete = result.archs_complete && list.complete;
    }
    result.archs = binary::runnable_archs(code);
    result.build = std::move(build);
    return result;
}

void note_loaded(Inspection& inspection, std::vector<OperatorFacts> registered) {
    std::vector<MappedOperator>& operators = inspection.build.operators;
    operators.clear();
    for (const OperatorFacts& op : registered) {
        operators.push_back({op.name, op.schema});
    }
    inspection.operators = std::move(registered);
    inspection.operators_complete = true;
}

}  // namespace twinkle::kernel
