#include "runtime/patterns/matcher.h"

#include "runtime/patterns/anchors.h"
#include "runtime/patterns/cast.h"
#include "runtime/patterns/flat_constants.h"
#include "runtime/patterns/found_place.h"

#include <algorithm>
#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

bool is_commutative(const c10::Symbol& op) {
    static const auto& all = *new std::unordered_set<c10::Symbol>{
        symbol("aten::add"),         symbol("aten::mul"),        symbol("aten::maximum"),
        symbol("aten::minimum"),     symbol("aten::eq"),         symbol("aten::ne"),
        symbol("aten::logical_and"), symbol("aten::logical_or"), symbol("aten::bitwise_and"),
        symbol("aten::bitwise_or")};
    return all.contains(op);
}

class Matcher {
public:
    Matcher(const FlatGraph& graph, const Formula& formula, const MatchLimits& limits)
        : graph_(graph), formula_(formula), limits_(limits), all_steps_(limits.steps) {}

    std::vector<FormulaMatch> find() {
        std::vector<FormulaMatch> found;
        for (const ValueId place : possible_results(graph_, formula_, all_steps_)) {
            if (auto match = at(place)) {
                found.push_back(std::move(*match));
            }
        }
        return found;
    }

private:
    struct Goal {
        ValueId wanted;
        FlatInput given;
        const Goal* next;
    };

    std::optional<FormulaMatch> at(ValueId place) {
        if (graph_.value(place).node == nothing) {
            return std::nullopt;
        }
        block_ = graph_.node(graph_.value(place).node).block;
        images_.assign(formula_.graph.values.size(), FlatInput{});
        nodes_.clear();
        dtypes_.clear();
        steps_ = 0;
        next_result_ = 1;
        found_.reset();
        const Goal goal{formula_.results[0], {place, 0, nullptr}, nullptr};
        try {
            solve(&goal);
        } catch (const Exhausted&) {
            if (!found_) {
                throw;
            }
        }
        return std::move(found_);
    }

    // One reading of a place. Another one may have no problem: which operand of a sum is a
    // residual, say.
    bool take() {
        if (!holds()) {
            return false;
        }
        FormulaMatch match = found_place(graph_, formula_, images_, nodes_);
        const bool is_good = match.problem.empty();
        if (is_good || !found_) {
            found_ = std::move(match);
        }
        return is_good;
    }

    bool solve(const Goal* goal) {
        if (goal == nullptr) {
            return rest();
        }
        all_steps_.spend();
        if (++steps_ > limits_.steps_per_place) {
            throw Exhausted{};
        }
        const FlatGraph& wanted = formula_.graph;
        const ValueId id = goal->wanted;
        FlatInput& image = images_[static_cast<std::size_t>(id)];
        if (image.value != nothing) {
            return is_same(image.value, goal->given.value) && solve(goal->next);
        }
        if (const c10::IValue* constant = wanted.constant_of(id)) {
            return is_constant(*constant, id, goal->given.value) && solve(goal->next);
        }
        const std::size_t parameter = formula_.parameter_of[static_cast<std::size_t>(id)];
        if (parameter != Formula::npos) {
            if (!accepts(graph_, *formula_.parameters[parameter].type, goal->given)) {
                return false;
            }
            return with_image(goal, [&] { return solve(goal->next); });
        }
        if (wanted.value(id).parts != nothing) {
            return parts(goal);
        }
        const FlatNode* node = wanted.node_of(id);
        if (node == nullptr) {
            return false;
        }
        if (const auto cast = as_cast(wanted, *node)) {
            return casts(goal, *cast);
        }
        return operation(goal, *node);
    }

    template <typename Then>
    bool with_image(const Goal* goal, const Then& then) {
        images_[static_cast<std::size_t>(goal->wanted)] = goal->given;
        if (then()) {
            return true;
        }
        images_[static_cast<std::size_t>(goal->wanted)].value = nothing;
        return false;
    }

    // A constant may be there several times.
    bool is_same(ValueId one, ValueId other) const {
        const c10::IValue* held = graph_.constant_of(one);
        const c10::IValue* held_too = one == other ? nullptr : graph_.constant_of(other);
        return one == other ||
               (held != nullptr && held_too != nullptr && equal_constants(*held, *held_too));
    }

    bool is_constant(const c10::IValue& constant, ValueId id, ValueId given) const {
        if (constant.isList()) {
            return equal_lists(formula_.graph, id, graph_, given);
        }
        const c10::IValue* held = graph_.constant_of(given);
        return held != nullptr && equal_constants(constant, *held);
    }

    bool parts(const Goal* goal) {
        const FlatGraph& wanted = formula_.graph;
        if (is_constant_list(wanted, goal->wanted)) {
            return equal_lists(wanted, goal->wanted, graph_, goal->given.value) &&
                   solve(goal->next);
        }
        const auto index = graph_.value(goal->given.value).parts;
        const auto& own = wanted.parts[static_cast<std::size_t>(wanted.value(goal->wanted).parts)];
        if (index == nothing ||
            graph_.parts[static_cast<std::size_t>(index)].size() != own.size()) {
            return false;
        }
        const auto& given = graph_.parts[static_cast<std::size_t>(index)];
        std::vector<Goal> goals;
        goals.reserve(own.size());
        const Goal* next = goal->next;
        for (std::size_t i = own.size(); i-- > 0;) {
            goals.push_back({own[i].value, given[i], next});
            next = &goals.back();
        }
        return with_image(goal, [&] { return solve(next); });
    }

    // A cast of the formula is a cast of the model, or does nothing there and is left out.
    bool casts(const Goal* goal, const Cast& wanted) {
        const FlatNode* node = graph_.node_of(goal->given.value);
        const auto given =
            node == nullptr || node->block != block_ ? std::nullopt : as_cast(graph_, *node);
        if (given) {
            const auto mark = nodes_.size();
            nodes_.push_back(graph_.value(goal->given.value).node);
            if (given->dtype_node != nothing) {
                nodes_.push_back(given->dtype_node);
            }
            if (with_image(goal, [&] { return same_dtype(goal, wanted, *given); })) {
                return true;
            }
            nodes_.resize(mark);
        }
        const c10::ScalarType own = graph_.value(goal->given.value).dtype;
        if (own == c10::ScalarType::Undefined || (!wanted.like && wanted.known != own)) {
            return false;
        }
        const Goal under{wanted.value.value, goal->given, goal->next};
        return with_image(goal, [&] { return if_like(wanted, own, &under); });
    }

    bool same_dtype(const Goal* goal, const Cast& wanted, const Cast& given) {
        const Goal under{wanted.value.value, given.value, goal->next};
        if (!wanted.like) {
            return wanted.known == given.known && solve(&under);
        }
        if (given.like) {
            const Goal like{wanted.like->value, *given.like, &under};
            if (solve(&like)) {
                return true;
            }
        }
        return given.known != c10::ScalarType::Undefined && if_like(wanted, given.known, &under);
    }

    // The dtype must be that of another value of the formula, which may not be found yet.
    bool if_like(const Cast& wanted, c10::ScalarType known, const Goal* next) {
        if (!wanted.like) {
            return solve(next);
        }
        dtypes_.emplace_back(wanted.like->value, known);
        if (solve(next)) {
            return true;
        }
        dtypes_.pop_back();
        return false;
    }

    bool operation(const Goal* goal, const FlatNode& wanted) {
        const FlatValue& value = graph_.value(goal->given.value);
        if (value.node == nothing) {
            return false;
        }
        const FlatNode& given = graph_.node(value.node);
        if (given.op != wanted.op || given.inputs.size() != wanted.inputs.size() ||
            given.block != block_ || value.output != formula_.graph.value(goal->wanted).output) {
            return false;
        }
        const auto mark = nodes_.size();
        nodes_.push_back(value.node);
        if (given.merged != nothing) {
            nodes_.push_back(given.merged);
        }
        const bool turned = is_commutative(given.op) && given.inputs.size() == 2 &&
                            given.inputs[0].value != given.inputs[1].value;
        if (with_image(goal, [&] {
                return inputs(goal, wanted, given, false) ||
                       (turned && inputs(goal, wanted, given, true));
            })) {
            return true;
        }
        nodes_.resize(mark);
        return false;
    }

    bool inputs(const Goal* goal, const FlatNode& wanted, const FlatNode& given, bool turned) {
        const std::size_t count = wanted.inputs.size();
        std::vector<Goal> goals;
        goals.reserve(count);
        const Goal* next = goal->next;
        for (std::size_t i = count; i-- > 0;) {
            goals.push_back(
                {wanted.inputs[i].value, given.inputs[turned ? count - 1 - i : i], next});
            next = &goals.back();
        }
        return solve(next);
    }

    // Results that are no part of what the first one needs are looked for by their operator.
    bool rest() {
        const std::size_t start = next_result_;
        const bool found = further_results();
        next_result_ = found ? next_result_ : start;
        return found;
    }

    bool further_results() {
        while (next_result_ < formula_.results.size() &&
               images_[static_cast<std::size_t>(formula_.results[next_result_])].value != nothing) {
            ++next_result_;
        }
        if (next_result_ == formula_.results.size()) {
            return take();
        }
        const ValueId wanted = formula_.results[next_result_];
        const FlatNode* node = formula_.graph.node_of(behind_casts(formula_.graph, wanted));
        for (const std::int32_t one : candidates(*node)) {
            all_steps_.spend();
            if (graph_.node(one).block != block_ || is_taken(one)) {
                continue;
            }
            for (const ValueId output : graph_.node(one).outputs) {
                const Goal goal{wanted, {output, 0, nullptr}, nullptr};
                if (solve(&goal)) {
                    return true;
                }
            }
        }
        return false;
    }

    // Nodes that may be this one of the formula: users of what it reads, where that is known.
    std::vector<std::int32_t> candidates(const FlatNode& wanted) const {
        for (const FlatInput& input : wanted.inputs) {
            const ValueId known = images_[static_cast<std::size_t>(input.value)].value;
            if (known == nothing || graph_.constant_of(known) != nullptr) {
                continue;
            }
            std::vector<std::int32_t> found;
            for (const std::int32_t user : graph_.value(known).users) {
                const bool again = !found.empty() && found.back() == user;
                if (graph_.node(user).op == wanted.op && !again) {
                    found.push_back(user);
                }
            }
            return found;
        }
        const auto all = graph_.by_op.find(wanted.op);
        return all == graph_.by_op.end() ? std::vector<std::int32_t>() : all->second;
    }

    // A node of the model is one node of the formula.
    bool is_taken(std::int32_t node) const {
        return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
    }

    // What can be said only when everything is found.
    bool holds() const {
        for (const auto& [like, dtype] : dtypes_) {
            const FlatInput& image = images_[static_cast<std::size_t>(like)];
            if (image.value == nothing || graph_.value(image.value).dtype != dtype) {
                return false;
            }
        }
        for (const FormulaParameter& parameter : formula_.parameters) {
            if (parameter.value == nothing) {
                continue;
            }
            const auto node =
                graph_.value(images_[static_cast<std::size_t>(parameter.value)].value).node;
            if (node != nothing && std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end()) {
                return false;
            }
        }
        return true;
    }

    const FlatGraph& graph_;
    const Formula& formula_;
    const MatchLimits& limits_;
    Steps all_steps_;
    std::size_t steps_ = 0;
    std::int32_t block_ = 0;
    std::size_t next_result_ = 1;
    std::vector<FlatInput> images_;  // by value of the formula
    std::vector<std::int32_t> nodes_;
    std::vector<std::pair<ValueId, c10::ScalarType>> dtypes_;
    std::optional<FormulaMatch> found_;
};

}  // namespace

tl::expected<std::vector<FormulaMatch>, std::string> find_formula(const FlatGraph& graph,
                                                                  const Formula& formula,
                                                                  const MatchLimits& limits) {
    try {
        return Matcher(graph, formula, limits).find();
    } catch (const Exhausted&) {
        return tl::make_unexpected(std::string("there are too many ways to read it"));
    }
}

}  // namespace twinkle::runtime
