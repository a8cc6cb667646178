#include "runtime/exported/size_expressions.h"

#include "base/text.h"
#include "python/parser.h"

#include <torch/csrc/jit/frontend/schema_matching.h>

#include <array>
#include <vector>

namespace twinkle::runtime::exported {

namespace jit = torch::jit;
namespace py = python;

namespace {

constexpr std::size_t longest_expression = 4000;  // it is written recursively

[[noreturn]] void unknown(const std::string& what) {
    throw UnknownExpression(base::printable(what.substr(0, 200)));
}

jit::Value* emit(jit::Graph& graph, const std::string& op, const std::vector<jit::Value*>& values) {
    const std::vector<jit::NamedValue> given(values.begin(), values.end());
    try {
        return jit::emitBuiltinCall(jit::SourceRange(), graph, c10::Symbol::fromQualString(op),
                                    given, {});
    } catch (const std::exception&) {
        unknown(op);
    }
}

const py::Expr* strip_name(const py::Call& call, std::string& name) {
    if (const auto* simple = py::as<py::Name>(call.func)) {
        name = simple->id;
        return nullptr;
    }
    if (const auto* method = py::as<py::Attribute>(call.func)) {
        name = method->attr;
        return method->value.get();
    }
    unknown("a call");
}

// "['x'][0]" of L['x'][0]; nothing for what is no input.
std::optional<std::string> input_path(const py::Expr* expression) {
    if (const auto* name = py::as<py::Name>(expression)) {
        return name->id == "L" ? std::optional<std::string>("") : std::nullopt;
    }
    const auto* part = py::as<py::Subscript>(expression);
    const auto* key = part == nullptr ? nullptr : py::as<py::Constant>(part->slice);
    const auto above = key == nullptr ? std::nullopt : input_path(part->value.get());
    if (!above) {
        return std::nullopt;
    }
    if (key->string() != nullptr) {
        return *above + "['" + *key->string() + "']";
    }
    const auto* index = std::get_if<std::int64_t>(&key->value);
    return index == nullptr ? std::nullopt
                            : std::optional(*above + "[" + std::to_string(*index) + "]");
}

class ExpressionWriter {
public:
    ExpressionWriter(jit::Graph& graph, const SizeExpression::Names& names)
        : graph_(graph), names_(names) {}

    jit::Value* write(const py::Expr* expression) {
        if (const auto* constant = py::as<py::Constant>(expression)) {
            return write_constant(*constant);
        }
        if (const auto* operation = py::as<py::BinOp>(expression)) {
            return emit(graph_, arithmetic(operation->op),
                        {write(operation->left.get()), write(operation->right.get())});
        }
        if (const auto* operation = py::as<py::UnaryOp>(expression)) {
            return write_unary(*operation);
        }
        if (const auto* comparison = py::as<py::Compare>(expression)) {
            return write_comparison(*comparison);
        }
        if (const auto* both = py::as<py::BoolOp>(expression)) {
            jit::Value* all = write(both->values.at(0).get());
            for (std::size_t i = 1; i < both->values.size(); ++i) {
                all = emit(graph_,
                           both->op == py::BoolOperator::And ? "aten::__and__" : "aten::__or__",
                           {all, write(both->values[i].get())});
            }
            return all;
        }
        if (const auto* call = py::as<py::Call>(expression)) {
            return write_call(*call);
        }
        if (const auto* part = py::as<py::Subscript>(expression)) {
            return write_subscript(*part);
        }
        unknown("an expression of this kind");
    }

private:
    jit::Value* write_constant(const py::Constant& constant) {
        if (const auto* integer = std::get_if<std::int64_t>(&constant.value)) {
            return graph_.insertConstant(*integer);
        }
        if (const auto* number = std::get_if<double>(&constant.value)) {
            return graph_.insertConstant(*number);
        }
        if (const auto* flag = std::get_if<bool>(&constant.value)) {
            return graph_.insertConstant(*flag);
        }
        unknown("a constant that is no number");
    }

    static const char* arithmetic(py::Operator op) {
        switch (op) {
            case py::Operator::Add: return "aten::add";
            case py::Operator::Sub: return "aten::sub";
            case py::Operator::Mult: return "aten::mul";
            case py::Operator::FloorDiv: return "aten::floordiv";
            case py::Operator::Div: return "aten::div";
            case py::Operator::Mod: return "aten::remainder";
            default: unknown("an operator that sizes do not have");
        }
    }

    static const char* relation(py::CompareOperator op) {
        switch (op) {
            case py::CompareOperator::Eq: return "aten::eq";
            case py::CompareOperator::NotEq: return "aten::ne";
            case py::CompareOperator::Lt: return "aten::lt";
            case py::CompareOperator::LtE: return "aten::le";
            case py::CompareOperator::Gt: return "aten::gt";
            case py::CompareOperator::GtE: return "aten::ge";
            default: unknown("a comparison that sizes do not have");
        }
    }

    jit::Value* write_unary(const py::UnaryOp& operation) {
        jit::Value* operand = write(operation.operand.get());
        switch (operation.op) {
            case py::UnaryOperator::Not: return emit(graph_, "aten::__not__", {operand});
            case py::UnaryOperator::USub: return emit(graph_, "aten::neg", {operand});
            case py::UnaryOperator::UAdd: return operand;
            default: unknown("an operator that sizes do not have");
        }
    }

    jit::Value* write_comparison(const py::Compare& comparison) {
        jit::Value* left = write(comparison.left.get());
        jit::Value* all = nullptr;
        for (std::size_t i = 0; i < comparison.ops.size(); ++i) {
            jit::Value* right = write(comparison.comparators[i].get());
            jit::Value* holds = emit(graph_, relation(comparison.ops[i]), {left, right});
            all = all == nullptr ? holds : emit(graph_, "aten::__and__", {all, holds});
            left = right;
        }
        return all;
    }

    // L['x'].size()[1], L['x'].shape[1], or L['n'] alone.
    jit::Value* write_subscript(const py::Subscript& part) {
        if (const auto path = input_path(&part)) {
            return input(*path);
        }
        const py::Expr* tensor = nullptr;
        std::string what;
        if (const auto* call = py::as<py::Call>(part.value)) {
            tensor = strip_name(*call, what);
        } else if (const auto* attribute = py::as<py::Attribute>(part.value)) {
            tensor = attribute->value.get();
            what = attribute->attr;
        }
        const auto path = tensor == nullptr ? std::nullopt : input_path(tensor);
        const bool is_stride = what == "stride";
        if (!path || (what != "size" && what != "shape" && !is_stride)) {
            unknown("a part of something that is no size");
        }
        return emit(graph_, is_stride ? "aten::stride" : "aten::size",
                    {input(*path), write(part.slice.get())});
    }

    jit::Value* input(const std::string& path) {
        jit::Value* found = names_.input ? names_.input(path) : nullptr;
        if (found == nullptr) {
            unknown("the input " + path);
        }
        return found;
    }

    jit::Value* write_call(const py::Call& call) {
        std::string name;
        const py::Expr* of = strip_name(call, name);
        if (of != nullptr) {
            const auto path = input_path(of);
            if (path && name == "storage_offset" && call.args.empty()) {
                return emit(graph_, "aten::storage_offset", {input(*path)});
            }
            if (path && name == "dim" && call.args.empty()) {
                return emit(graph_, "aten::dim", {input(*path)});
            }
            unknown("a call of " + name);
        }
        if (name == "Symbol") {
            const auto* text = call.args.empty() ? nullptr : py::as<py::Constant>(call.args[0]);
            const auto found = text == nullptr || text->string() == nullptr
                                   ? names_.symbols.end()
                                   : names_.symbols.find(*text->string());
            if (found == names_.symbols.end()) {
                unknown("a symbol that no input has");
            }
            return found->second;
        }
        if (name == "Integer" && call.args.size() == 1) {
            return write(call.args[0].get());
        }
        return write_function(name, call);
    }

    jit::Value* write_function(const std::string& name, const py::Call& call) {
        static const std::map<std::string, const char*> functions = {
            {"Add", "aten::add"},
            {"Mul", "aten::mul"},
            {"Max", "prim::max"},
            {"Min", "prim::min"},
            {"max", "prim::max"},
            {"min", "prim::min"},
            {"FloorDiv", "aten::floordiv"},
            {"CleanDiv", "aten::floordiv"},
            {"Mod", "aten::remainder"},
            {"PythonMod", "aten::remainder"},
            {"IntTrueDiv", "aten::div"},
            {"FloatTrueDiv", "aten::div"},
            {"Eq", "aten::eq"},
            {"Equality", "aten::eq"},
            {"Ne", "aten::ne"},
            {"Unequality", "aten::ne"},
            {"LessThan", "aten::le"},
            {"StrictLessThan", "aten::lt"},
            {"GreaterThan", "aten::ge"},
            {"StrictGreaterThan", "aten::gt"},
            {"And", "aten::__and__"},
            {"Or", "aten::__or__"},
        };
        const auto found = functions.find(name);
        if (found == functions.end() || call.args.size() < 2 || !call.keywords.empty()) {
            unknown("the function " + name);
        }
        jit::Value* result = write(call.args[0].get());
        for (std::size_t i = 1; i < call.args.size(); ++i) {
            result = emit(graph_, found->second, {result, write(call.args[i].get())});
        }
        return result;
    }

    jit::Graph& graph_;
    const SizeExpression::Names& names_;
};

const std::string* symbol_in(const py::Expr* expression) {
    const auto* call = py::as<py::Call>(expression);
    const auto* name = call == nullptr ? nullptr : py::as<py::Name>(call->func);
    if (name == nullptr || name->id != "Symbol" || call->args.empty()) {
        return nullptr;
    }
    const auto* text = py::as<py::Constant>(call->args[0]);
    return text == nullptr ? nullptr : text->string();
}

std::optional<std::int64_t> integer_in(const py::Expr* expression) {
    const auto* call = py::as<py::Call>(expression);
    const auto* name = call == nullptr ? nullptr : py::as<py::Name>(call->func);
    if (name == nullptr || name->id != "Integer" || call->args.size() != 1) {
        return std::nullopt;
    }
    const py::Expr* argument = call->args[0].get();
    std::int64_t sign = 1;
    if (const auto* minus = py::as<py::UnaryOp>(argument);
        minus != nullptr && minus->op == py::UnaryOperator::USub) {
        argument = minus->operand.get();
        sign = -1;
    }
    const auto* constant = py::as<py::Constant>(argument);
    const auto* value = constant == nullptr ? nullptr : std::get_if<std::int64_t>(&constant->value);
    constexpr std::int64_t largest = std::int64_t(1) << 40;
    return value == nullptr || *value > largest ? std::nullopt : std::optional(sign * *value);
}

const py::Call* call_of(const py::Expr* expression, const char* function) {
    const auto* call = py::as<py::Call>(expression);
    const auto* name = call == nullptr ? nullptr : py::as<py::Name>(call->func);
    return name != nullptr && name->id == function && call->args.size() == 2 ? call : nullptr;
}

std::optional<SizeExpression::Linear> multiple_in(const py::Expr* expression) {
    if (const std::string* symbol = symbol_in(expression)) {
        return SizeExpression::Linear{*symbol, 1, 0};
    }
    if (const py::Call* product = call_of(expression, "Mul")) {
        for (const std::size_t number : {0, 1}) {
            const auto factor = integer_in(product->args[number].get());
            const std::string* symbol = symbol_in(product->args[1 - number].get());
            if (factor && symbol != nullptr && *factor > 0) {
                return SizeExpression::Linear{*symbol, *factor, 0};
            }
        }
    }
    return std::nullopt;
}

}  // namespace

SizeExpression::SizeExpression(const std::string& text) {
    if (text.size() > longest_expression) {
        unknown("an expression that is too long");
    }
    auto parsed = py::parse_module(text, "expression");
    if (!parsed || (*parsed)->body.size() != 1) {
        unknown("what is no expression of Python");
    }
    module_ = std::move(*parsed);
    const auto* statement = py::as<py::ExprStmt>(module_->body.front());
    if (statement == nullptr) {
        unknown("what is no expression of Python");
    }
    expression_ = statement->value.get();
}

SizeExpression::~SizeExpression() = default;
SizeExpression::SizeExpression(SizeExpression&&) noexcept = default;

jit::Value* SizeExpression::write(jit::Graph& graph, const Names& names) const {
    return ExpressionWriter(graph, names).write(expression_);
}

std::optional<std::string> SizeExpression::symbol() const {
    const std::string* name = symbol_in(expression_);
    return name == nullptr ? std::nullopt : std::optional(*name);
}

std::optional<SizeExpression::Linear> SizeExpression::linear() const {
    if (const py::Call* sum = call_of(expression_, "Add")) {
        for (const std::size_t number : {0, 1}) {
            const auto offset = integer_in(sum->args[number].get());
            auto multiple = multiple_in(sum->args[1 - number].get());
            if (offset && multiple) {
                multiple->offset = *offset;
                return multiple;
            }
        }
        return std::nullopt;
    }
    return multiple_in(expression_);
}

}  // namespace twinkle::runtime::exported
