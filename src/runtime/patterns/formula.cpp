#include "runtime/patterns/formula.h"
#include "runtime/graph/format.h"

#include "runtime/patterns/cast.h"
#include "runtime/source/compile_report.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/sugared_value.h>

#include <algorithm>
#include <variant>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

constexpr std::size_t most_nodes = 200;
constexpr std::size_t most_parameters = 16;

std::optional<c10::IValue> literal(const py::Expr* expr) {
    const auto* constant = py::as<py::Constant>(expr);
    if (constant == nullptr) {
        return std::nullopt;
    }
    return std::visit(
        [](const auto& held) -> std::optional<c10::IValue> {
            using Held = std::decay_t<decltype(held)>;
            if constexpr (std::is_same_v<Held, py::None>) {
                return c10::IValue();
            } else if constexpr (std::is_same_v<Held, bool> || std::is_same_v<Held, std::int64_t> ||
                                 std::is_same_v<Held, double> ||
                                 std::is_same_v<Held, std::string>) {
                return c10::IValue(held);
            } else {
                return std::nullopt;
            }
        },
        constant->value);
}

class Compiler {
public:
    Compiler(Compilation& compilation, const PackageModule& module, const py::FunctionDef& def)
        : compilation_(compilation), module_(module), def_(def) {}

    Formula compile() {
        formula_.name = def_.name;
        read_parameters();
        const auto graph = body();
        std::vector<FlatInput> results;
        auto flat = flatten(graph, results, {most_nodes, 20});
        if (!flat) {
            throw CannotCompile(flat.error());
        }
        formula_.graph = std::move(*flat);
        take_results(results);
        take_parameters(*graph);
        check_nodes();
        take_operators();
        check_results();
        return std::move(formula_);
    }

private:
    void read_parameters() {
        const py::Arguments& args = def_.args;
        if (args.vararg != nullptr || args.kwarg != nullptr || !args.kwonlyargs.empty() ||
            !args.posonlyargs.empty()) {
            throw CannotCompile("a formula has plain parameters only");
        }
        if (args.args.empty() || args.args.size() > most_parameters) {
            throw CannotCompile(fmt::format("a formula has 1 to {} parameters", most_parameters));
        }
        const std::size_t without = args.args.size() - args.defaults.size();
        for (std::size_t i = 0; i < args.args.size(); ++i) {
            FormulaParameter parameter{args.args[i].arg, c10::TensorType::get(), nothing, {}};
            if (const auto& annotation = args.args[i].annotation) {
                parameter.type = compilation_.type_of(module_, {}, *annotation);
            }
            if (parameter.type == nullptr) {
                throw CannotCompile("the type of " + parameter.name + " is none of TorchScript");
            }
            if (i >= without) {
                parameter.fixed = literal(args.defaults[i - without].get());
                if (parameter.fixed && parameter.fixed->isInt() &&
                    parameter.type->kind() == c10::TypeKind::FloatType) {
                    parameter.fixed = static_cast<double>(parameter.fixed->toInt());
                }
            }
            formula_.parameters.push_back(std::move(parameter));
        }
    }

    std::shared_ptr<jit::Graph> body() {
        auto graph = std::make_shared<jit::Graph>();
        const jit::SourceRange range(std::make_shared<jit::Source>(def_.name), 0, def_.name.size());
        std::vector<jit::NamedValue> arguments;
        for (const FormulaParameter& parameter : formula_.parameters) {
            arguments.emplace_back(range, graph->addInput(parameter.name)->setType(parameter.type));
        }
        jit::GraphFunction function(c10::QualifiedName("__torch__.twinkle_patterns.formula"), graph,
                                    nullptr);
        const auto value = compilation_.value_of(module_, {}, def_.name, range);
        graph->registerOutput(
            value->call(range, function, arguments, {}, 1)->asValue(range, function));
        return graph;
    }

    void take_results(const std::vector<FlatInput>& results) {
        FlatGraph& graph = formula_.graph;
        const auto parts = graph.value(results.at(0).value).parts;
        if (parts == nothing) {
            formula_.results.push_back(results[0].value);
            return;
        }
        for (const FlatInput& part : graph.parts[static_cast<std::size_t>(parts)]) {
            formula_.results.push_back(part.value);
        }
    }

    void take_parameters(const jit::Graph& graph) {
        formula_.parameter_of.assign(formula_.graph.values.size(), Formula::npos);
        for (std::size_t i = 0; i < formula_.parameters.size(); ++i) {
            FormulaParameter& parameter = formula_.parameters[i];
            const ValueId id = formula_.graph.value_in(0, graph.inputs()[i]);
            if (!formula_.graph.value(id).users.empty()) {
                parameter.value = id;
                parameter.fixed.reset();
                formula_.parameter_of[static_cast<std::size_t>(id)] = i;
            } else if (!parameter.fixed) {
                throw CannotCompile("it does not use " + parameter.name +
                                    ", which has no default that says what it stands for");
            }
        }
    }

    void check_nodes() const {
        for (const FlatNode& node : formula_.graph.nodes) {
            const auto* schema = node.node->maybeSchema();
            if (!node.node->blocks().empty() || node.node->hasSideEffects() ||
                (schema != nullptr && schema->is_mutable()) ||
                node.node->kind() == c10::prim::CallMethod ||
                node.node->kind() == c10::prim::CallFunction) {
                throw CannotCompile(
                    fmt::format("it contains {}; a formula is straight-line code "
                                "that writes into nothing",
                                node.node->kind().toQualString()));
            }
        }
    }

    void check_results() const {
        const FlatGraph& graph = formula_.graph;
        if (formula_.results.empty()) {
            throw CannotCompile("it has no result");
        }
        for (const ValueId result : formula_.results) {
            if (graph.node_of(behind_casts(graph, result)) == nullptr) {
                throw CannotCompile("a result of it is not computed by any operator");
            }
            if (graph.value(result).kind != ValueKind::tensor) {
                throw CannotCompile("a result of it is no tensor");
            }
        }
    }

    // For each node, whether a result depends on it. A node that no result needs would match
    // anything.
    std::vector<bool> needed() const {
        const FlatGraph& graph = formula_.graph;
        std::vector<bool> all(graph.nodes.size(), false);
        std::vector<ValueId> pending = formula_.results;
        std::vector<bool> seen(graph.values.size(), false);
        while (!pending.empty()) {
            const auto id = static_cast<std::size_t>(pending.back());
            pending.pop_back();
            if (seen[id]) {
                continue;
            }
            seen[id] = true;
            const FlatValue& value = graph.values[id];
            if (value.parts != nothing) {
                for (const auto& part : graph.parts[static_cast<std::size_t>(value.parts)]) {
                    pending.push_back(part.value);
                }
            }
            if (value.node != nothing) {
                all[static_cast<std::size_t>(value.node)] = true;
                for (const FlatInput& input : graph.node(value.node).inputs) {
                    pending.push_back(input.value);
                }
            }
        }
        return all;
    }

    void take_operators() {
        static const auto dtype = c10::Symbol::fromQualString("prim::dtype");
        static const auto type_as = c10::Symbol::fromQualString("aten::type_as");
        const std::vector<bool> needs = needed();
        for (std::size_t i = 0; i < needs.size(); ++i) {
            const c10::Symbol op = formula_.graph.nodes[i].op;
            // A cast that does nothing in a model is not there.
            if (needs[i] && op != cast_op() && op != dtype && op != type_as &&
                std::find(formula_.ops.begin(), formula_.ops.end(), op) == formula_.ops.end()) {
                formula_.ops.push_back(op);
            }
        }
        if (formula_.ops.empty()) {
            throw CannotCompile("it has no operator but casts");
        }
    }

    Compilation& compilation_;
    const PackageModule& module_;
    const py::FunctionDef& def_;
    Formula formula_;
};

}  // namespace

tl::expected<Formula, std::string> compile_formula(Compilation& compilation,
                                                   const std::string& module,
                                                   const std::string& name) {
    try {
        compilation.begin(nullptr);
        KernelPackage& package = compilation.package();
        const PackageModule* source = package.module(module);
        const auto found =
            source == nullptr ? KernelPackage::Definition{} : package.find(module, name);
        const auto* def =
            found.module == nullptr ? nullptr : std::get_if<const py::FunctionDef*>(found.binding);
        if (def == nullptr) {
            return tl::make_unexpected("there is no function " + name);
        }
        return Compiler(compilation, *source, **def).compile();
    } catch (const std::exception& error) {
        return tl::make_unexpected(compile_report(error));
    }
}

}  // namespace twinkle::runtime
