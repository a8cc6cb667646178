#include "runtime/inspect/source_trial.h"

#include "base/text.h"
#include "kernel/verdict.h"
#include "runtime/graph/format.h"
#include "runtime/inspect/guessed_types.h"
#include "runtime/kernels/declared_operators.h"
#include "runtime/source/compile_report.h"
#include "runtime/source/layer_compiler.h"

#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

constexpr std::chrono::seconds longest_trials{60};  // for all of a package

// The operators' module that a build generates, for a source without one.
std::string written_ops(const std::string& op_namespace) {
    return fmt::format(
        "import torch\nops = torch.ops.{0}\n"
        "def add_op_namespace_prefix(op_name: str):\n    return f\"{0}::{{op_name}}\"\n",
        op_namespace);
}

jit::SourceRange trial_range(const std::string& name) {
    return {std::make_shared<jit::Source>(name, "inspect", 1), 0, name.size()};
}

// Compiler messages that hold whatever the types are.
bool holds_for_every_type(const std::string& why) {
    static constexpr std::array<std::string_view, 16> certain = {
        "has no counterpart", "has no meaning",         "that may change what it computes",
        "the Triton kernel",  "depends on what is run", "is a module variable that changes",
        "the Python class",   "is called recursively",  "a ** argument",
        "a comprehension",    "keep no state",          "does more than ask another object",
        "nest too deeply",    "the layer is too large", "% format outside",
        "lead in a circle"};
    return std::any_of(certain.begin(), certain.end(),
                       [&](std::string_view one) { return why.find(one) != std::string::npos; });
}

std::string text_of_types(const std::vector<TypedParameter>& parameters) {
    std::vector<std::string> texts;
    for (const TypedParameter& one : parameters) {
        texts.push_back(one.name + ": " + one.type->repr_str());
    }
    return "(" + base::join(texts, ", ") + ")";
}

const TypedParameter* without_type(const std::vector<TypedParameter>& parameters) {
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [](const auto& one) { return one.type == nullptr; });
    return found == parameters.end() ? nullptr : &*found;
}

class Trials {
public:
    explicit Trials(const TriedPackage& package) : package_(package) {
        if (package_.op_namespace.empty()) {
            package_.op_namespace = "_twinkle_inspected";
        }
        package_.sources.emplace("_ops.py", written_ops(package_.op_namespace));
        MappedKernel kernel;
        kernel.op_namespace = package_.op_namespace;
        kernel.operators = package_.operators;
        declare_operators(kernel);
        for (const MappedOperator& op : package_.operators) {
            add_argument_types(op.schema);
        }
    }

    SourceTrials run() {
        SourceTrials result;
        for (const kernel::LayerSource& layer : kernel::read_layers(package_.sources).layers) {
            if (kernel::judge(layer, {}).usable != kernel::Usability::needs_python) {
                result.layers.push_back(tried(layer.name, layer.usage, &Trials::try_layer));
            }
        }
        for (const auto& one : kernel::read_functions(package_.sources).functions) {
            if (kernel::judge(one.usage, {}).usable != kernel::Usability::needs_python) {
                result.functions.push_back(tried(one.name, one.usage, &Trials::try_function));
            }
        }
        return result;
    }

private:
    using Try = void (Trials::*)(SourceTrial&, const TypeGuess& guess);

    // A parameter often has the same name as the argument of the operator that it is passed to.
    void add_argument_types(const std::string& schema) {
        try {
            const c10::FunctionSchema parsed = jit::parseSchema(schema);
            for (const c10::Argument& argument : parsed.arguments()) {
                c10::TypePtr type = argument.type();
                if (const auto optional = type->cast<c10::OptionalType>()) {
                    type = optional->getElementType();
                }
                argument_types_.emplace(argument.name(), type);
            }
        } catch (const std::exception&) {
            // declare_operators has left it out, too.
        }
    }

    c10::TypePtr guessed_type(const std::string& name) const {
        const auto known = argument_types_.find(name);
        return known != argument_types_.end() ? known->second : type_by_name(name);
    }

    // Tries types guessed by name first, then tensors only: the author may mean either.
    SourceTrial tried(const std::string& name, const kernel::Usage& usage, Try attempt) {
        SourceTrial best{name, TrialOutcome::unknown, "", ""};
        if (const auto missing = unknown_operator(usage); !missing.empty()) {
            best.why = "the schema of the operator " + missing + " is not known";
            return best;
        }
        const std::array<TypeGuess, 2> guesses = {
            [this](const std::string& parameter) { return guessed_type(parameter); },
            [](const std::string&) -> c10::TypePtr { return c10::TensorType::get(); }};
        for (const TypeGuess& guess : guesses) {
            if (std::chrono::steady_clock::now() - begun_ > longest_trials) {
                best.why = best.why.empty() ? "the package takes too long" : best.why;
                return best;
            }
            SourceTrial trial{name, TrialOutcome::unknown, "", ""};
            try {
                (this->*attempt)(trial, guess);
            } catch (const std::exception& error) {
                trial.why = compile_report(error.what());
            }
            if (trial.outcome == TrialOutcome::compiled) {
                return trial;
            }
            if (holds_for_every_type(trial.why) && !needs_dependency_) {
                trial.outcome = TrialOutcome::refused;
                return trial;
            }
            best = best.why.empty() ? trial : best;
        }
        return best;
    }

    // An operator that the source calls and whose schema was not found: a compiler has split its
    // text, or it is registered without one.
    std::string unknown_operator(const kernel::Usage& usage) const {
        for (const std::string& name : usage.operators) {
            const bool known =
                std::any_of(package_.operators.begin(), package_.operators.end(),
                            [&](const MappedOperator& op) {
                                return op.name == name || op.name.starts_with(name + ".");
                            });
            if (!known) {
                return name;
            }
        }
        return "";
    }

    std::shared_ptr<Compilation> fresh() {
        needs_dependency_ = false;
        auto made = std::make_shared<Compilation>(std::make_shared<KernelPackage>(package_.sources),
                                                  std::make_shared<jit::CompilationUnit>());
        made->set_variant(package_.variant);
        made->set_dependencies([this](const std::string& name) -> std::shared_ptr<KernelPackage> {
            needs_dependency_ = true;
            throw CannotCompile("it uses the kernel " + name + ", which is not looked at here");
        });
        return made;
    }

    void try_function(SourceTrial& trial, const TypeGuess& guess) {
        const auto compilation = fresh();
        const auto found = compilation->package().find_definition("", trial.name);
        const auto* def =
            found.module ? std::get_if<const py::FunctionDef*>(found.binding) : nullptr;
        if (def == nullptr) {
            throw CannotCompile("there is no function " + trial.name);
        }
        const auto parameters =
            required_parameters(*compilation, *found.module, (*def)->args, false, guess);
        if (const auto* one = without_type(parameters)) {
            throw CannotCompile("TorchScript has no type for the parameter " + one->name);
        }
        compilation->begin(nullptr);
        const jit::SourceRange range = trial_range(trial.name);
        const auto value =
            compilation->value_of(*compilation->package().module(""), {}, trial.name, range);
        auto graph = std::make_shared<jit::Graph>();
        std::vector<jit::NamedValue> positional;
        std::vector<jit::NamedValue> named;
        for (const TypedParameter& one : parameters) {
            jit::Value* input = graph->addInput()->setType(one.type);
            if (one.keyword_only) {
                named.emplace_back(range, one.name, input);
            } else {
                positional.emplace_back(range, input);
            }
        }
        jit::GraphFunction body(c10::QualifiedName("__torch__.twinkle_inspected.call"), graph,
                                nullptr);
        value->call(range, body, positional, named, 1)->asValue(range, body);
        trial.outcome = TrialOutcome::compiled;
        trial.types = text_of_types(parameters);
    }

    void try_layer(SourceTrial& trial, const TypeGuess& guess) {
        const auto compilation = fresh();
        const LayerDefinition layer = find_layer(compilation->package(), trial.name);
        const auto parameters =
            required_parameters(*compilation, *layer.module, layer.forward->args, true, guess);
        if (const auto* one = without_type(parameters)) {
            throw CannotCompile("TorchScript has no type for the parameter " + one->name);
        }
        const auto host = guessed_host(*compilation, *layer.module, *layer.type, *layer.forward);
        LayerSignature signature;
        for (const TypedParameter& one : parameters) {
            signature.arguments.push_back({one.name, one.type});
        }
        const auto method = compile_layer(*compilation, trial.name, host.type(),
                                          "twinkle_inspected", signature, {});
        if (!method) {
            trial.why = method.error();
            return;
        }
        trial.outcome = TrialOutcome::compiled;
        trial.types = text_of_types(parameters);
    }

    TriedPackage package_;
    std::map<std::string, c10::TypePtr> argument_types_;
    bool needs_dependency_ = false;
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace

std::string_view outcome_name(TrialOutcome outcome) {
    switch (outcome) {
        case TrialOutcome::compiled: return "compiled";
        case TrialOutcome::refused: return "refused";
        case TrialOutcome::unknown: return "unknown";
    }
    return "";
}

SourceTrials try_sources(const TriedPackage& package) {
    return Trials(package).run();
}

}  // namespace twinkle::runtime
