#include "runtime/source/lowering_expressions.h"

#include "python/walk.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

// The variable of a comprehension is another one than what has its name outside.
class OwnNames {
public:
    OwnNames(FunctionScope& scope, const py::Expr& target)
        : scope_(scope), constants_(scope.constants), stands_for_(scope.stands_for) {
        py::walk(target, [&](const py::Node& node) {
            if (const auto* name = py::as<py::Name>(node)) {
                scope_.constants.erase(name->id);
                scope_.stands_for.erase(name->id);
            }
            return true;
        });
    }
    ~OwnNames() {
        scope_.constants = constants_;
        scope_.stands_for = stands_for_;
    }
    OwnNames(const OwnNames&) = delete;
    OwnNames& operator=(const OwnNames&) = delete;

private:
    FunctionScope& scope_;
    std::map<std::string, py::ConstantValue> constants_;
    std::map<std::string, const py::Expr*> stands_for_;
};

// Small, and without variables of its own: it can stand there several times.
bool can_repeat(const py::Expr& expr) {
    constexpr std::size_t largest = 200;
    bool binds = false;
    std::size_t nodes = 0;
    py::walk(expr, [&](const py::Node& node) {
        const auto* name = py::as<py::Name>(node);
        binds = binds || (name != nullptr && name->ctx != py::ExprContext::Load);
        return !binds && ++nodes <= largest;
    });
    return !binds && nodes <= largest;
}

}  // namespace

jit::Expr Expressions::comprehension(const py::Expr& elt,
                                     const std::vector<py::Comprehension>& generators,
                                     const Range& range) {
    const jit::Expr over = lower(*generators[0].iter);
    const OwnNames own(scope_, *generators[0].target);
    return jit::ListComp::create(range, lower(elt), lower(*generators[0].target), over);
}

jit::Expr Expressions::comprehension(const py::DictComp& node, const Range& range) {
    const jit::Expr over = lower(*node.generators[0].iter);
    const OwnNames own(scope_, *node.generators[0].target);
    return jit::DictComp::create(range, lower(*node.key), lower(*node.value),
                                 lower(*node.generators[0].target), over);
}

// a, b = [f(x) for x in (c, d)]: f(c) and f(d), each with its own type, where a list has one. Only
// of names and constants, which stand for the same before and after f is called.
std::optional<jit::Expr> Expressions::written_out(const py::Expr& comprehension,
                                                  std::size_t count) {
    const auto* list = py::as<py::ListComp>(comprehension);
    const auto* generator = py::as<py::GeneratorExp>(comprehension);
    if (list == nullptr && generator == nullptr) {
        return std::nullopt;
    }
    const auto& loops = list ? list->generators : generator->generators;
    const py::Expr& element = list ? *list->elt : *generator->elt;
    file_.check(comprehension);
    const auto* variable = py::as<py::Name>(loops[0].target);
    const auto* tuple = py::as<py::Tuple>(loops[0].iter);
    const auto* values = py::as<py::List>(loops[0].iter);
    if (variable == nullptr || (tuple == nullptr && values == nullptr)) {
        return std::nullopt;
    }
    const auto& over = tuple ? tuple->elts : values->elts;
    const bool plain = std::all_of(over.begin(), over.end(), [](const py::ExprPtr& one) {
        return py::as<py::Name>(one) != nullptr || py::as<py::Constant>(one) != nullptr;
    });
    constexpr std::size_t most = 32;
    if (!plain || over.size() != count || count > most || !can_repeat(element)) {
        return std::nullopt;
    }
    const auto before = scope_.stands_for;
    std::vector<jit::Expr> results;
    for (const py::ExprPtr& one : over) {
        scope_.stands_for[variable->id] = one.get();
        results.push_back(lower(element));
        scope_.stands_for = before;
    }
    const Range range = file_.range(comprehension);
    return jit::TupleLiteral::create(range, jit::List<jit::Expr>::create(range, results));
}

}  // namespace twinkle::runtime
