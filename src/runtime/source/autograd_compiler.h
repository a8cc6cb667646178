#pragma once
// Compiles an autograd.Function for the types of one call: into the class of its ctx, for training,
// or its forward alone.

#include "runtime/source/autograd_class.h"
#include "runtime/source/package_values.h"

#include <optional>
#include <vector>

namespace twinkle::runtime {

// An argument of apply. One whose value is known decides what is compiled, and is passed still:
// autograd wants a gradient for each.
struct AppliedArgument {
    c10::TypePtr type;
    std::optional<python::ConstantValue> constant;
};

class FunctionCompiler {
public:
    FunctionCompiler(Compilation& compilation, const ClassSource& source,
                     const std::vector<AppliedArgument>& arguments);

    // The class of ctx, with the methods that the operators of autograd_apply.h call. Throws
    // CannotCompile, as plain_forward does.
    c10::ClassTypePtr context_class();

    // Forward, where no gradient will come back; null if it uses its ctx as a value.
    torch::jit::Function* plain_forward();

private:
    // The newer style, in which forward has no ctx and setup_context follows it.
    bool own_context() const { return setup_.def != nullptr; }

    Bindings imports_in(const MethodSource& method) const;
    torch::jit::ResolverPtr scope_of(const MethodSource& method) const;
    MethodSource required_method(const std::string& name);
    torch::jit::Def lower(const MethodSource& method, std::vector<LoweredParameter> parameters);
    // Adds a method to the class; returns the type of its result.
    c10::TypePtr define(const c10::ClassTypePtr& type, const MethodSource& method,
                        const std::vector<LoweredParameter>& parameters, bool add_self = false);
    std::size_t count_outputs(const c10::TypePtr& output) const;
    std::vector<LoweredParameter> gradients(const MethodSource& backward,
                                            const c10::ClassType& type, std::size_t outputs);
    void check_gradients(const MethodSource& backward, const c10::TypePtr& result) const;

    Compilation& compilation_;
    ClassSource source_;
    std::vector<c10::TypePtr> argument_types_;
    MethodSource forward_;
    MethodSource setup_;
    std::string context_;
    std::vector<LoweredParameter> parameters_;
    StoredValues stored_;  // by forward, for backward
};

}  // namespace twinkle::runtime
