#include "runtime/source/torch_names.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Value = std::shared_ptr<jit::SugaredValue>;

struct ConstantValue : jit::SugaredValue {
    explicit ConstantValue(c10::IValue constant) : value(std::move(constant)) {}
    std::string kind() const override { return "constant"; }
    jit::Value* asValue(const jit::SourceRange& loc, jit::GraphFunction& m) override {
        return m.graph()->insertConstant(value, loc);
    }
    std::vector<Value> asTuple(const jit::SourceRange& loc, jit::GraphFunction& m,
                               const std::optional<size_t>& hint) override {
        return jit::SimpleValue(asValue(loc, m)).asTuple(loc, m, hint);
    }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction& m,
               const std::string& field) override {
        return jit::SimpleValue(asValue(loc, m)).attr(loc, m, field);
    }
    c10::IValue value;
};

struct ForeignModuleValue : jit::SugaredValue {
    explicit ForeignModuleValue(std::string module_name) : name(std::move(module_name)) {}
    std::string kind() const override { return "module " + name; }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction&,
               const std::string& field) override {
        if (Value value = foreign_name(name, field)) {
            return value;
        }
        throw(jit::ErrorReport(loc) << name << "." << field << " has no meaning in TorchScript");
    }
    std::string name;
};

// torch.ops.ns.name, and the overload after it
struct OperatorValue : jit::BuiltinFunction {
    using BuiltinFunction::BuiltinFunction;
    Value attr(const jit::SourceRange&, jit::GraphFunction&, const std::string&) override {
        return shared_from_this();
    }
};

struct OperatorNamespace : jit::SugaredValue {
    explicit OperatorNamespace(std::string ns) : name(std::move(ns)) {}
    std::string kind() const override { return "operator namespace " + name; }
    Value attr(const jit::SourceRange&, jit::GraphFunction&, const std::string& field) override {
        return std::make_shared<OperatorValue>(c10::Symbol::fromQualString(name + "::" + field),
                                               std::nullopt);
    }
    std::string name;
};

struct OperatorRoot : jit::SugaredValue {
    std::string kind() const override { return "torch.ops"; }
    Value attr(const jit::SourceRange&, jit::GraphFunction&, const std::string& field) override {
        return std::make_shared<OperatorNamespace>(field);
    }
};

const std::map<std::string, at::ScalarType>& dtypes() {
    static const auto& table =
        *new std::map<std::string, at::ScalarType>{{"uint8", at::kByte},
                                                   {"int8", at::kChar},
                                                   {"int16", at::kShort},
                                                   {"short", at::kShort},
                                                   {"int32", at::kInt},
                                                   {"int", at::kInt},
                                                   {"int64", at::kLong},
                                                   {"long", at::kLong},
                                                   {"float16", at::kHalf},
                                                   {"half", at::kHalf},
                                                   {"float32", at::kFloat},
                                                   {"float", at::kFloat},
                                                   {"float64", at::kDouble},
                                                   {"double", at::kDouble},
                                                   {"bool", at::kBool},
                                                   {"bfloat16", at::kBFloat16},
                                                   {"complex64", at::kComplexFloat},
                                                   {"complex128", at::kComplexDouble},
                                                   {"float8_e4m3fn", at::kFloat8_e4m3fn},
                                                   {"float8_e5m2", at::kFloat8_e5m2}};
    return table;
}

bool is_operator(const std::string& qualified) {
    return !jit::getAllOperatorsFor(c10::Symbol::fromQualString(qualified)).empty();
}

Value builtin(const std::string& qualified) {
    return is_operator(qualified) ? std::make_shared<jit::BuiltinFunction>(
                                        c10::Symbol::fromQualString(qualified), std::nullopt)
                                  : nullptr;
}

Value math_constant(const std::string& name) {
    static const std::map<std::string, double> values = {
        {"pi", M_PI},
        {"e", M_E},
        {"inf", std::numeric_limits<double>::infinity()},
        {"nan", std::numeric_limits<double>::quiet_NaN()}};
    const auto found = values.find(name);
    return found == values.end() ? nullptr : constant_value(found->second);
}

Value torch_name(const std::string& name) {
    if (const auto dtype = dtypes().find(name); dtype != dtypes().end()) {
        return constant_value(static_cast<std::int64_t>(dtype->second));
    }
    if (name == "ops") {
        return std::make_shared<OperatorRoot>();
    }
    if (name == "strided") {
        return constant_value(static_cast<std::int64_t>(at::kStrided));
    }
    if (Value value = math_constant(name)) {
        return value;
    }
    return builtin("aten::" + name);
}

constexpr std::array<const char*, 8> known_modules = {
    "torch", "torch.nn", "torch.nn.functional", "torch.ops",
    "math",  "typing",   "torch.linalg",        "torch.special"};

}  // namespace

Value constant_value(c10::IValue value) {
    return std::make_shared<ConstantValue>(std::move(value));
}

Value foreign_module(const std::string& name) {
    if (name == "torch.ops") {
        return std::make_shared<OperatorRoot>();
    }
    for (const char* known : known_modules) {
        if (name == known) {
            return std::make_shared<ForeignModuleValue>(name);
        }
    }
    return nullptr;
}

Value foreign_name(const std::string& module, const std::string& name) {
    if (Value value = foreign_module(module + "." + name)) {
        return value;
    }
    if (module == "torch") {
        return torch_name(name);
    }
    if (module == "torch.nn.functional") {
        return builtin("aten::" + name);
    }
    if (module == "torch.linalg" || module == "torch.special") {
        return builtin("aten::" + module.substr(6) + "_" + name);
    }
    if (module == "math") {
        Value value = math_constant(name);
        return value ? value : builtin("aten::" + name);
    }
    if (module.starts_with("torch.ops.")) {
        return std::make_shared<OperatorValue>(
            c10::Symbol::fromQualString(module.substr(10) + "::" + name), std::nullopt);
    }
    if (module == "torch.ops") {
        return std::make_shared<OperatorNamespace>(name);
    }
    return nullptr;
}

Value builtin_name(const std::string& name) {
    static const std::array<const char*, 12> exceptions = {
        "Exception",           "ValueError",      "TypeError",         "RuntimeError",
        "AssertionError",      "IndexError",      "KeyError",          "AttributeError",
        "NotImplementedError", "ArithmeticError", "ZeroDivisionError", "OverflowError"};
    for (const char* exception : exceptions) {
        if (name == exception) {
            return std::make_shared<jit::ExceptionValue>(name);
        }
    }
    return nullptr;
}

}  // namespace twinkle::runtime
