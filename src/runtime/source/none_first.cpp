#include "runtime/source/none_first.h"

#include "runtime/source/lowering.h"

#include <map>
#include <set>
#include <vector>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using jit::TreeRef;

bool is_none(const TreeRef& tree) {
    return tree->kind() == jit::TK_NONE;
}

// The names that an assignment sets to None: of a = b = None, or of a, b = None, None.
std::vector<std::string> set_to_none(const TreeRef& statement) {
    if (statement->kind() != jit::TK_ASSIGN || !jit::Assign(statement).rhs().present() ||
        jit::Assign(statement).type().present()) {
        return {};
    }
    const auto targets = statement->trees()[0]->trees();
    const TreeRef value = jit::Assign(statement).rhs().get().tree();
    std::vector<TreeRef> set(targets.begin(), targets.end());
    std::vector<TreeRef> values{value};
    if (set.size() == 1 && set[0]->kind() == jit::TK_TUPLE_LITERAL &&
        value->kind() == jit::TK_TUPLE_LITERAL) {
        const auto of = [](const TreeRef& tuple) {
            const auto parts = tuple->trees()[0]->trees();
            return std::vector<TreeRef>(parts.begin(), parts.end());
        };
        values = of(value);
        set = of(set[0]);
    }
    std::vector<std::string> names;
    for (const TreeRef& target : set) {
        if (target->kind() != jit::TK_VAR) {
            return {};
        }
        names.push_back(jit::Var(target).name().name());
    }
    for (const TreeRef& one : values) {
        if (!is_none(one)) {
            return {};
        }
    }
    return names;
}

class Annotator {
public:
    explicit Annotator(std::string type) : optional_tensor_(std::move(type)) {}

    jit::Def annotate(const jit::Def& function) {
        const TreeRef body = function.statements().tree();
        count(body);
        return jit::Def::create(function.range(), function.name(), function.decl(),
                                jit::List<jit::Stmt>(rewritten(body)));
    }

private:
    void count_target(const TreeRef& target) {
        if (target->kind() == jit::TK_VAR) {
            ++assigned_[jit::Var(target).name().name()];
        } else if (target->kind() == jit::TK_TUPLE_LITERAL || target->kind() == jit::TK_LIST) {
            for (const TreeRef& part : target->trees()) {
                count_target(part);
            }
        }
    }

    // Assignments of something else than None.
    void count(const TreeRef& tree) {
        if (tree->kind() == jit::TK_ASSIGN && set_to_none(tree).empty()) {
            count_target(tree->trees()[0]);
        }
        for (const TreeRef& part : tree->trees()) {
            count(part);
        }
    }

    // Statements stand in lists; one of them may become several.
    TreeRef rewritten(const TreeRef& tree) {
        if (tree->kind() != jit::TK_LIST) {
            return tree->map([&](const TreeRef& part) { return rewritten(part); });
        }
        jit::TreeList parts;
        for (const TreeRef& part : tree->trees()) {
            const auto names = set_to_none(part);
            if (names.empty()) {
                parts.push_back(rewritten(part));
            }
            for (const std::string& name : names) {
                parts.push_back(assign_none(part->range(), name));
            }
        }
        return jit::Compound::create(jit::TK_LIST, tree->range(), std::move(parts));
    }

    TreeRef assign_none(const jit::SourceRange& range, const std::string& name) {
        const jit::Expr target = jit::Var::create(range, jit::Ident::create(range, name));
        const jit::Expr none(jit::Compound::create(jit::TK_NONE, range, {}));
        const bool varies = assigned_[name] > 0 && begun_.insert(name).second;
        return jit::Assign::create(
                   range, jit::List<jit::Expr>::create(range, {target}),
                   jit::Maybe<jit::Expr>::create(range, none),
                   varies ? jit::Maybe<jit::Expr>::create(range, type_reference(optional_tensor_))
                          : jit::Maybe<jit::Expr>::create(range))
            .tree();
    }

    std::string optional_tensor_;
    std::map<std::string, int> assigned_;
    std::set<std::string> begun_;
};

}  // namespace

jit::Def annotate_none_first(const jit::Def& function, const std::string& optional_tensor) {
    return Annotator(optional_tensor).annotate(function);
}

}  // namespace twinkle::runtime
