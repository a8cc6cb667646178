#include "runtime/source/torch_names.h"

#include "runtime/source/lowering.h"
#include "runtime/source/partial_value.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

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
    ForeignModuleValue(std::string module_name, PythonFunctions python)
        : name(std::move(module_name)), functions(std::move(python)) {}
    std::string kind() const override { return "module " + name; }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction&,
               const std::string& field) override {
        if (Value value = foreign_name(name, field, functions)) {
            return value;
        }
        throw(jit::ErrorReport(loc) << name << "." << field << " has no meaning in TorchScript");
    }
    std::string name;
    PythonFunctions functions;
};

struct UnknownValue : jit::SugaredValue {
    explicit UnknownValue(std::string full_name) : name(std::move(full_name)) {}
    std::string kind() const override { return name + ", which has no meaning in TorchScript,"; }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction&,
               const std::string& field) override {
        throw(jit::ErrorReport(loc) << name << "." << field << " has no meaning in TorchScript");
    }
    Value call(const jit::SourceRange& loc, jit::GraphFunction&, at::ArrayRef<jit::NamedValue>,
               at::ArrayRef<jit::NamedValue>, size_t) override {
        throw(jit::ErrorReport(loc) << name << " has no meaning in TorchScript");
    }
    std::string name;
};

// An operator of torch. Where Python passes an int for a float, so does this: LibTorch's compiler
// would not.
struct FunctionOperator : jit::BuiltinFunction {
    using BuiltinFunction::BuiltinFunction;
    Value attr(const jit::SourceRange& loc, jit::GraphFunction&,
               const std::string& field) override {
        if (field == lowered_name::partial) {
            return partial_maker(shared_from_this());
        }
        // torch.cuda is a module in Python, and a method of tensors here.
        throw(jit::ErrorReport(loc) << "torch." << symbol.toUnqualString() << "." << field
                                    << " has no meaning in TorchScript");
    }
    Value call(const jit::SourceRange& loc, jit::GraphFunction& m,
               at::ArrayRef<jit::NamedValue> args, at::ArrayRef<jit::NamedValue> kwargs,
               size_t n_binders) override {
        const auto operators = jit::getAllOperatorsFor(symbol);
        if (operators.empty()) {
            throw(jit::ErrorReport(loc) << "the operator " << symbol.toQualString()
                                        << " is not there: no library has registered it");
        }
        if (operators.size() != 1) {
            return BuiltinFunction::call(loc, m, args, kwargs, n_binders);
        }
        const c10::FunctionSchema& schema = operators.front()->schema();
        const auto converted = [&](const jit::NamedValue& given, std::size_t formal) {
            jit::Value* value = given.value(*m.graph());
            c10::TypePtr wanted = formal < schema.arguments().size()
                                      ? schema.arguments()[formal].type()
                                      : c10::TypePtr(c10::NoneType::get());
            if (const auto optional = wanted->cast<c10::OptionalType>()) {
                wanted = optional->getElementType();
            }
            if (wanted->kind() != c10::TypeKind::FloatType ||
                value->type()->kind() != c10::TypeKind::IntType) {
                return value;
            }
            return jit::emitBuiltinCall(loc, *m.graph(), c10::aten::Float, {value}, {});
        };
        std::vector<jit::NamedValue> positional;
        for (std::size_t i = 0; i < args.size(); ++i) {
            positional.emplace_back(args[i].locOr(loc), converted(args[i], i));
        }
        std::vector<jit::NamedValue> named;
        for (const jit::NamedValue& argument : kwargs) {
            const auto index = schema.argumentIndexWithName(argument.name());
            named.emplace_back(argument.locOr(loc), argument.name(),
                               converted(argument, index ? static_cast<std::size_t>(*index)
                                                         : schema.arguments().size()));
        }
        return BuiltinFunction::call(loc, m, positional, named, n_binders);
    }
};

// torch.ops.ns.name, and the overload after it
struct OperatorValue : FunctionOperator {
    using FunctionOperator::FunctionOperator;
    Value attr(const jit::SourceRange&, jit::GraphFunction&, const std::string& field) override {
        return field == lowered_name::partial ? partial_maker(shared_from_this())
                                              : shared_from_this();
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

const std::map<std::string, at::MemoryFormat>& memory_formats() {
    static const std::map<std::string, at::MemoryFormat> table = {
        {"contiguous_format", at::MemoryFormat::Contiguous},
        {"preserve_format", at::MemoryFormat::Preserve},
        {"channels_last", at::MemoryFormat::ChannelsLast},
        {"channels_last_3d", at::MemoryFormat::ChannelsLast3d}};
    return table;
}

bool is_operator(const std::string& qualified) {
    return !jit::getAllOperatorsFor(c10::Symbol::fromQualString(qualified)).empty();
}

Value builtin(const std::string& qualified) {
    return is_operator(qualified) ? std::make_shared<FunctionOperator>(
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
    if (const auto format = memory_formats().find(name); format != memory_formats().end()) {
        return constant_value(static_cast<std::int64_t>(format->second));
    }
    if (Value value = math_constant(name)) {
        return value;
    }
    return builtin("aten::" + name);
}

// Functions of torch.nn.functional whose operator takes the same arguments in the same order.
bool is_same_as_operator(const std::string& name) {
    static const std::set<std::string> same = {"adaptive_avg_pool1d",
                                               "adaptive_avg_pool2d",
                                               "adaptive_avg_pool3d",
                                               "avg_pool1d",
                                               "avg_pool2d",
                                               "bilinear",
                                               "channel_shuffle",
                                               "conv1d",
                                               "conv2d",
                                               "conv3d",
                                               "conv_transpose1d",
                                               "conv_transpose2d",
                                               "cosine_similarity",
                                               "gelu",
                                               "glu",
                                               "group_norm",
                                               "hardshrink",
                                               "layer_norm",
                                               "linear",
                                               "log_softmax",
                                               "one_hot",
                                               "pad",
                                               "pairwise_distance",
                                               "pixel_shuffle",
                                               "pixel_unshuffle",
                                               "prelu",
                                               "rms_norm",
                                               "sigmoid",
                                               "softmax",
                                               "softplus",
                                               "softshrink",
                                               "tanh",
                                               "scaled_dot_product_attention"};
    return same.contains(name);
}

constexpr std::array<const char*, 10> known_modules = {
    "torch",  "torch.nn",     "torch.nn.functional", "torch.ops",  "math",
    "typing", "torch.linalg", "torch.special",       "torch.cuda", "torch.version"};

}  // namespace

Value constant_value(c10::IValue value) {
    return std::make_shared<ConstantValue>(std::move(value));
}

Value foreign_module(const std::string& name, const PythonFunctions& functions) {
    if (name == "torch.ops") {
        return std::make_shared<OperatorRoot>();
    }
    for (const char* known : known_modules) {
        if (name == known) {
            return std::make_shared<ForeignModuleValue>(name, functions);
        }
    }
    return nullptr;
}

Value foreign_name(const std::string& module, const std::string& name,
                   const PythonFunctions& functions) {
    if (Value value = foreign_module(module + "." + name, functions)) {
        return value;
    }
    if (Value value = functions ? functions(module, name) : nullptr) {
        return value;
    }
    if (module == "torch") {
        return torch_name(name);
    }
    if (module == "torch.nn.functional") {
        return is_same_as_operator(name) ? builtin("aten::" + name) : nullptr;
    }
    if (module == "torch.cuda") {
        return name == "device_count" || name == "is_available" ? builtin("twinkle::cuda_" + name)
                                                                : nullptr;
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

bool is_exception(const std::string& builtin) {
    static const std::set<std::string> names = {
        "BaseException",    "Exception",           "ArithmeticError",
        "AssertionError",   "AttributeError",      "BufferError",
        "EOFError",         "EnvironmentError",    "IOError",
        "ImportError",      "IndexError",          "KeyError",
        "LookupError",      "MemoryError",         "ModuleNotFoundError",
        "NameError",        "NotImplementedError", "OSError",
        "OverflowError",    "RecursionError",      "ReferenceError",
        "RuntimeError",     "StopIteration",       "SystemError",
        "TimeoutError",     "TypeError",           "UnicodeError",
        "UserWarning",      "ValueError",          "Warning",
        "ZeroDivisionError"};
    return names.contains(builtin);
}

Value builtin_name(const std::string& name) {
    return is_exception(name) ? std::make_shared<jit::ExceptionValue>(name) : nullptr;
}

Value literal_value(const python::Constant& constant) {
    if (const auto* flag = std::get_if<bool>(&constant.value)) {
        return constant_value(*flag);
    }
    if (const auto* integer = std::get_if<std::int64_t>(&constant.value)) {
        return constant_value(*integer);
    }
    if (const auto* number = std::get_if<double>(&constant.value)) {
        return constant_value(*number);
    }
    return constant.string()    ? constant_value(*constant.string())
           : constant.is_none() ? constant_value(c10::IValue())
                                : nullptr;
}

Value unknown_foreign(const std::string& name) {
    return std::make_shared<UnknownValue>(name);
}

}  // namespace twinkle::runtime
