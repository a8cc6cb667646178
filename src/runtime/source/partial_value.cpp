#include "runtime/source/partial_value.h"

#include "runtime/source/lowering.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Value = std::shared_ptr<jit::SugaredValue>;
using Arguments = at::ArrayRef<jit::NamedValue>;

struct PartialValue : jit::SugaredValue {
    PartialValue(Value of, std::vector<BoundArgument> given)
        : function(std::move(of)), bound(std::move(given)) {}
    std::string kind() const override { return "partial of a " + function->kind(); }

    // What is given with the call comes behind, and names replace those that were given before.
    Value call(const jit::SourceRange& loc, jit::GraphFunction& m, Arguments args, Arguments kwargs,
               size_t n_binders) override {
        std::vector<jit::NamedValue> positional;
        std::vector<jit::NamedValue> named;
        for (const BoundArgument& one : bound) {
            if (one.name.empty()) {
                positional.emplace_back(loc, one.value->asValue(loc, m));
                continue;
            }
            const bool replaced = std::any_of(
                kwargs.begin(), kwargs.end(),
                [&](const jit::NamedValue& argument) { return argument.name() == one.name; });
            if (!replaced) {
                named.emplace_back(loc, one.name, one.value->asValue(loc, m));
            }
        }
        positional.insert(positional.end(), args.begin(), args.end());
        named.insert(named.end(), kwargs.begin(), kwargs.end());
        return function->call(loc, m, positional, named, n_binders);
    }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction&,
               const std::string& field) override {
        if (field == lowered_name::partial) {
            return partial_maker(shared_from_this());
        }
        throw(jit::ErrorReport(loc) << field << " of a " << kind());
    }

    Value function;
    std::vector<BoundArgument> bound;
};

struct PartialMaker : jit::SugaredValue {
    explicit PartialMaker(Value of) : function(std::move(of)) {}
    std::string kind() const override { return "functools.partial"; }
    Value call(const jit::SourceRange&, jit::GraphFunction& m, Arguments args, Arguments kwargs,
               size_t) override {
        std::vector<BoundArgument> bound;
        const auto value = [&](const jit::NamedValue& argument) {
            return std::make_shared<jit::SimpleValue>(argument.value(*m.graph()));
        };
        for (const jit::NamedValue& argument : args) {
            bound.push_back({"", value(argument)});
        }
        for (const jit::NamedValue& argument : kwargs) {
            bound.push_back({argument.name(), value(argument)});
        }
        return partial_value(function, std::move(bound));
    }
    Value function;
};

}  // namespace

Value partial_maker(Value function) {
    return std::make_shared<PartialMaker>(std::move(function));
}

Value partial_value(Value function, std::vector<BoundArgument> arguments) {
    return std::make_shared<PartialValue>(std::move(function), std::move(arguments));
}

}  // namespace twinkle::runtime
