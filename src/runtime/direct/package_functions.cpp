#include "runtime/direct/package_functions.h"

#include "runtime/source/compile_report.h"
#include "runtime/verify/run_error.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/frontend/sugared_value.h>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

jit::SourceRange range_of_call(const std::string& name) {
    return {std::make_shared<jit::Source>(name + "(…)", "call", 1), 0, name.size()};
}

std::pair<std::string, std::string> module_and_name(const std::string& name) {
    const auto dot = name.rfind('.');
    return dot == std::string::npos ? std::pair(std::string(), name)
                                    : std::pair(name.substr(0, dot), name.substr(dot + 1));
}

c10::TypePtr type_of(const c10::IValue& value) {
    return c10::unshapedType(value.type());
}

// None, flags and short texts decide what a function computes and returns, so it is compiled for
// them, as in a layer that passes them.
bool decides(const c10::IValue& value) {
    constexpr std::size_t longest = 64;
    return value.isNone() || value.isBool() ||
           (value.isString() && value.toStringRef().size() <= longest);
}

std::string key_of(const c10::IValue& value) {
    if (value.isString() && decides(value)) {
        return std::to_string(value.toStringRef().size()) + "'" + value.toStringRef() + "'";
    }
    const bool flag = value.isBool();
    return flag ? value.toBool() ? "True" : "False" : type_of(value)->repr_str();
}

}  // namespace

PackageFunctions::PackageFunctions(const LoadedKernel& kernel)
    : kernel_name_(kernel.kernel.name),
      compilation_(std::make_shared<Compilation>(std::make_shared<KernelPackage>(kernel.sources),
                                                 std::make_shared<jit::CompilationUnit>())) {
    compilation_->set_variant(kernel.kernel.variant);
}

bool PackageFunctions::has(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    const auto [module, function] = module_and_name(name);
    try {
        return compilation_->package().is_callable(module, function);
    } catch (const CannotCompile&) {
        return true;  // it does not parse, which the call says
    }
}

c10::IValue PackageFunctions::call(const std::string& name, std::vector<c10::IValue> arguments,
                                   const Implementation::Keywords& keywords) {
    jit::Function& function = compiled(name, arguments, keywords);
    jit::Stack stack;
    for (c10::IValue& argument : arguments) {
        if (!decides(argument)) {
            stack.push_back(std::move(argument));
        }
    }
    for (const auto& [keyword, value] : keywords) {
        if (!decides(value)) {
            stack.push_back(value);
        }
    }
    try {
        function.run(stack);
    } catch (const std::exception& error) {
        throw Error(ErrorCode::failed, {.what = "the function failed",
                                        .where = kernel_name_ + ": " + name,
                                        .why = run_error(error.what()),
                                        .hint = ""});
    }
    return stack.empty() ? c10::IValue() : stack.front();
}

jit::Function& PackageFunctions::compiled(const std::string& name,
                                          const std::vector<c10::IValue>& arguments,
                                          const Implementation::Keywords& keywords) {
    std::string key = name;
    for (const c10::IValue& argument : arguments) {
        key += "," + key_of(argument);
    }
    for (const auto& [keyword, value] : keywords) {
        key += "," + keyword + "=" + key_of(value);
    }
    const std::scoped_lock lock(mutex_);
    const auto found = functions_.find(key);
    if (found != functions_.end()) {
        return *found->second;
    }
    const std::string unique = "call_" + std::to_string(functions_.size());
    jit::Function& made = compile(name, unique, arguments, keywords);
    functions_.emplace(key, &made);
    return made;
}

// A function of nothing but the call, so that the arguments mean what they mean in a layer.
jit::Function& PackageFunctions::compile(const std::string& name, const std::string& unique,
                                         const std::vector<c10::IValue>& arguments,
                                         const Implementation::Keywords& keywords) {
    const auto [module, function] = module_and_name(name);
    const jit::SourceRange range = range_of_call(name);
    try {
        compilation_->begin(nullptr);
        const PackageModule* source = compilation_->package().module(module);
        const auto value =
            source == nullptr ? nullptr : compilation_->value_of(*source, {}, function, range);
        if (!value) {
            throw CannotCompile("there is no function " + name);
        }
        auto graph = std::make_shared<jit::Graph>();
        std::vector<jit::NamedValue> positional;
        std::vector<jit::NamedValue> named;
        const auto value_in = [&](const c10::IValue& argument) {
            return decides(argument) ? graph->insertConstant(argument, range)
                                     : graph->addInput()->setType(type_of(argument));
        };
        for (const c10::IValue& argument : arguments) {
            positional.emplace_back(range, value_in(argument));
        }
        for (const auto& [keyword, argument] : keywords) {
            named.emplace_back(range, keyword, value_in(argument));
        }
        jit::GraphFunction body(c10::QualifiedName("__torch__.twinkle_calls", unique), graph,
                                nullptr);
        const auto result = value->call(range, body, positional, named, 1);
        graph->registerOutput(result->asValue(range, body));
        return *compilation_->unit().create_function(body.qualname(), graph);
    } catch (const std::exception& error) {
        throw Error(ErrorCode::refused,
                    {.what = "the function cannot be compiled for these arguments",
                     .where = kernel_name_ + ": " + name,
                     .why = compile_report(error.what()),
                     .hint = "`twinkle inspect` says what of a kernel needs Python"});
    }
}

}  // namespace twinkle::runtime
