#include "runtime/direct/operator_call.h"
#include "runtime/graph/format.h"

#include "base/text.h"
#include "runtime/layers/operator_check.h"
#include "runtime/source/compile_report.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/runtime/operator.h>

#include <tl/expected.hpp>

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Overloads = std::vector<std::shared_ptr<jit::Operator>>;

// The arguments in the order of the schema, defaults filled in; or why they do not fit.
tl::expected<jit::Stack, std::string> arranged(const c10::FunctionSchema& schema,
                                               const std::vector<c10::IValue>& arguments,
                                               const Implementation::Keywords& keywords) {
    jit::Stack stack;
    for (std::size_t i = 0; i < arguments.size() && i < schema.arguments().size(); ++i) {
        stack.push_back(fitted(arguments[i], schema.arguments()[i].type()));
    }
    if (arguments.size() > schema.arguments().size()) {
        return tl::make_unexpected(fmt::format("it takes {} arguments, not {}",
                                               schema.arguments().size(), arguments.size()));
    }
    std::unordered_map<std::string, c10::IValue> named;
    for (const auto& [name, value] : keywords) {
        const auto index = schema.argumentIndexWithName(name);
        named[name] = index ? fitted(value, schema.arguments()[*index].type()) : value;
    }
    try {
        schema.checkAndNormalizeInputs(stack, named);
    } catch (const std::exception& error) {
        return tl::make_unexpected(compile_report(error.what()));
    }
    return stack;
}

c10::IValue run(jit::Operator& op, jit::Stack stack) {
    try {
        op.getOperation()(stack);
    } catch (const std::exception& error) {
        throw Error(ErrorCode::failed, {.what = "the operator failed",
                                        .where = op.schema().name(),
                                        .why = compile_report(error.what()),
                                        .hint = ""});
    }
    if (stack.size() == 1) {
        return stack.front();
    }
    return stack.empty() ? c10::IValue() : c10::IValue(c10::ivalue::Tuple::create(stack));
}

c10::IValue call(const Overloads& overloads, const std::string& name,
                 const std::vector<c10::IValue>& arguments,
                 const Implementation::Keywords& keywords) {
    std::vector<std::string> reasons;
    for (const auto& op : overloads) {
        auto stack = arranged(op->schema(), arguments, keywords);
        if (stack) {
            return run(*op, std::move(*stack));
        }
        reasons.push_back(c10::toString(op->schema()) + ": " + stack.error());
    }
    throw Error(ErrorCode::malformed, {.what = "the arguments do not fit the operator",
                                       .where = name,
                                       .why = base::join(reasons, "\n         "),
                                       .hint = ""});
}

}  // namespace

c10::IValue fitted(const c10::IValue& value, const c10::TypePtr& type) {
    c10::TypePtr wanted = type;
    if (const auto optional = type->cast<c10::OptionalType>()) {
        wanted = optional->getElementType();
    }
    const bool is_float = wanted->kind() == c10::TypeKind::FloatType;
    return is_float && value.isInt() ? c10::IValue(static_cast<double>(value.toInt())) : value;
}

Implementation operator_named(const std::string& op_namespace, const std::string& name) {
    const std::string qualified = op_namespace + "::" + name;
    const Overloads overloads = jit::getAllOperatorsFor(c10::Symbol::fromQualString(qualified));
    if (overloads.empty()) {
        throw Error(ErrorCode::not_found,
                    {.what = "there is no operator of this name",
                     .where = qualified,
                     .why = "",
                     .hint = "Kernel::operators() lists them, as `twinkle inspect` does"});
    }
    const bool differentiable = std::all_of(overloads.begin(), overloads.end(), [](const auto& op) {
        return has_autograd_kernel({op->schema().name(), op->schema().overload_name()});
    });
    return {qualified,
            [overloads, qualified](const std::vector<c10::IValue>& arguments,
                                   const Implementation::Keywords& keywords) {
                return call(overloads, qualified, arguments, keywords);
            },
            std::nullopt, differentiable};
}

}  // namespace twinkle::runtime
