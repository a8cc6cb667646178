#pragma once
// What is known of a function's names while it is lowered: which are its own, which are constants.

#include "runtime/source/lowering.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace twinkle::runtime {

// In Python a torch.Size is a tuple, and never equal to a list; in TorchScript both are lists.
enum class Sequence { none, unknown, tuple, list };

// One function that is being lowered.
struct FunctionScope {
    const SourceFile& file;
    const NameScope& names;
    std::map<std::string, int> assigned;  // its local names, and how often each is bound
    std::map<std::string, python::ConstantValue> constants;
    std::set<std::string> modules;    // parameters that are modules
    std::string no_arguments;         // *args, for which the site passes nothing, or `rest`
    std::string no_keywords;          // **kwargs, likewise
    std::set<std::string> bound;      // local names that have a value by now
    bool in_message = false;          // of an exception: how values are printed does not matter
    std::vector<std::string> rest{};  // the parameters that *args has become
    // Variables of comprehensions that are written out: what each stands for.
    std::map<std::string, const python::Expr*> stands_for{};
    std::map<std::string, Sequence> sequences{};  // local names that are bound once
    std::map<std::string, int> stores{};          // attributes of ctx, and how often each is bound

    bool is_local(const std::string& name) const { return assigned.contains(name); }
};

// How often the function binds each of its names, parameters included.
std::map<std::string, int> assigned_names(const python::FunctionDef& function);

// The value of an expression that is known while compiling.
std::optional<python::ConstantValue> known_value(const FunctionScope& scope,
                                                 const python::Expr& expr);
// Whether a condition holds, where that is known.
std::optional<bool> known_truth(const FunctionScope& scope, const python::Expr& expr);

// What an expression is, as far as its text tells.
Sequence sequence_of(const FunctionScope& scope, const python::Expr& expr);

// How often each attribute of `ctx` is bound in the function; nothing where ctx is used as a value,
// so that anybody may bind them.
std::optional<std::map<std::string, int>> attributes_bound(const python::FunctionDef& function,
                                                           const std::string& ctx);

// kwargs.pop("name", default) and kwargs.get("name", default) of empty keywords: the default, null
// for None. The outer optional: whether it is such a call.
std::optional<const python::Expr*> default_of_keyword(const FunctionScope& scope,
                                                      const python::Expr& expr);

torch::jit::Expr lower_expression(FunctionScope& scope, const python::Expr& expr);
// A comprehension that is unpacked into so many targets, as a tuple; none where it cannot be.
std::optional<torch::jit::Expr> lower_written_out(FunctionScope& scope,
                                                  const python::Expr& comprehension,
                                                  std::size_t count);
torch::jit::Expr lower_test(FunctionScope& scope, const python::Expr& expr);
torch::jit::Expr lower_constant_value(const torch::jit::SourceRange& range,
                                      const python::ConstantValue& value);

}  // namespace twinkle::runtime
