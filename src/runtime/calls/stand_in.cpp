#include "runtime/calls/stand_in.h"
#include "runtime/graph/format.h"

#include "base/text.h"
#include "runtime/graph/forward_methods.h"
#include "runtime/graph/result_like.h"
#include "runtime/source/compile_report.h"

#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::size_t longest_text = 64;

jit::SourceRange range_of(const std::string& name) {
    const std::string text = name + "(…)";
    return {std::make_shared<jit::Source>(text, "call", 1), 0, text.size()};
}

bool is_default(const c10::Argument& argument, const std::optional<c10::IValue>& constant) {
    const auto& value = argument.default_value();
    return constant && value && *value == *constant;
}

// Which parameter each argument goes to; none: it is left out.
using Places = std::vector<std::optional<std::size_t>>;

class Attempt {
public:
    Attempt(const CallShape& call, const Substitute& substitute, bool writes)
        : call_(call),
          schema_(call.function->getSchema()),
          substitute_(substitute),
          writes_(writes),
          range_(range_of(substitute.name)) {}

    // The body of the stand-in.
    tl::expected<std::shared_ptr<jit::Graph>, std::string> graph() {
        const auto places = arrange();
        if (!places) {
            return tl::make_unexpected(places.error());
        }
        make_inputs();
        if (writes_) {
            const auto like = result_like(*call_.function, call_.constants);
            if (!like) {
                return tl::make_unexpected("it writes into a result whose shape is not known: " +
                                           like.error());
            }
            out_ = make_like(*graph_, *like, arguments_[like->argument]);
        }
        jit::Value* result = call(*places);
        if (auto problem = wrong_effects()) {
            return tl::make_unexpected(*problem);
        }
        result = writes_ ? out_ : result;
        const auto& wanted = schema_.returns().at(0).type();
        if (!result->type()->isSubtypeOf(*wanted)) {
            return tl::make_unexpected(fmt::format("it returns {}, the function {}",
                                                   result->type()->repr_str(), wanted->repr_str()));
        }
        if (*result->type() != *wanted) {
            result = graph_->insertUncheckedCast(result, wanted);
        }
        graph_->registerOutput(result);
        return graph_;
    }

private:
    tl::expected<Places, std::string> arrange() const {
        const auto& parameters = substitute_.parameters;
        const std::size_t first = writes_ ? 1 : 0;
        Places places(schema_.arguments().size());
        std::optional<std::size_t> last;
        for (std::size_t i = 0; i < places.size(); ++i) {
            places[i] = place_of(i, first);
            if (!places[i]) {
                if (!is_default(schema_.arguments()[i], call_.constants[i])) {
                    return tl::make_unexpected("it has no parameter for the argument " +
                                               schema_.arguments()[i].name());
                }
                continue;
            }
            // A call by position, which a saved model does not tell from one by name, would mean
            // something else.
            if (last && *places[i] <= *last) {
                return tl::make_unexpected(
                    "its parameters are in another order than the function's");
            }
            last = places[i];
        }
        for (std::size_t p = first; p < parameters.size(); ++p) {
            const bool given = std::any_of(places.begin(), places.end(),
                                           [&](const auto& place) { return place == p; });
            if (!given && !parameters[p].has_default) {
                return tl::make_unexpected("the call has nothing for its parameter " +
                                           parameters[p].name);
            }
        }
        return places;
    }

    std::optional<std::size_t> place_of(std::size_t argument, std::size_t first) const {
        const auto& parameters = substitute_.parameters;
        const auto named = [&](const std::string& name) {
            return std::find_if(parameters.begin() + static_cast<std::ptrdiff_t>(first),
                                parameters.end(),
                                [&](const auto& one) { return one.name == name; });
        };
        if (const auto found = named(schema_.arguments()[argument].name());
            found != parameters.end()) {
            return static_cast<std::size_t>(found - parameters.begin());
        }
        const std::size_t same = argument + first;
        const bool free = same < parameters.size() && !parameters[same].keyword_only &&
                          !schema_.argumentIndexWithName(parameters[same].name);
        return free ? std::optional(same) : std::nullopt;
    }

    void make_inputs() {
        for (std::size_t i = 0; i < schema_.arguments().size(); ++i) {
            jit::Value* input = graph_->addInput(schema_.arguments()[i].name())
                                    ->setType(schema_.arguments()[i].type());
            inputs_.push_back(input);
            arguments_.push_back(call_.constants[i] ? graph_->insertConstant(*call_.constants[i])
                                                    : input);
        }
    }

    jit::Value* call(const Places& places) {
        std::vector<jit::NamedValue> positional;
        std::vector<jit::NamedValue> named;
        if (writes_) {
            positional.emplace_back(range_, out_);
        }
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (!places[i]) {
                continue;
            }
            const SubstituteParameter& parameter = substitute_.parameters[*places[i]];
            if (*places[i] == positional.size() && !parameter.keyword_only) {
                positional.emplace_back(range_, arguments_[i]);
            } else {
                named.emplace_back(range_, parameter.name, arguments_[i]);
            }
        }
        jit::GraphFunction body(c10::QualifiedName("__torch__.twinkle_functions.body"), graph_,
                                nullptr);
        return substitute_.value->call(range_, body, positional, named, 1)->asValue(range_, body);
    }

    // What it writes into must be what the function writes into, and its own result.
    std::optional<std::string> wrong_effects() const {
        std::set<std::size_t> written;
        bool result_written = false;
        for (const jit::Value* root : written_roots(graph_->block())) {
            result_written = result_written || root == out_;
            const auto input = std::find(inputs_.begin(), inputs_.end(), root);
            if (input != inputs_.end()) {
                written.insert(static_cast<std::size_t>(input - inputs_.begin()));
            }
        }
        if (writes_ && !result_written) {
            return "it does not write into its first argument";
        }
        const auto original = written_inputs(*call_.function, call_.constants);
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            const std::string& name = schema_.arguments()[i].name();
            if (written.contains(i) && !original.contains(i)) {
                return "it writes into " + name + ", which the function does not";
            }
            if (!written.contains(i) && original.contains(i)) {
                return "the function writes into " + name + ", which it does not";
            }
        }
        return std::nullopt;
    }

    const CallShape& call_;
    const c10::FunctionSchema& schema_;
    const Substitute& substitute_;
    bool writes_;
    jit::SourceRange range_;
    std::shared_ptr<jit::Graph> graph_ = std::make_shared<jit::Graph>();
    std::vector<jit::Value*> inputs_;
    std::vector<jit::Value*> arguments_;  // the inputs, or the constants that they are
    jit::Value* out_ = nullptr;
};

tl::expected<std::shared_ptr<jit::Graph>, std::string> attempt(const CallShape& call,
                                                               const Substitute& substitute,
                                                               bool writes) {
    try {
        substitute.begin();
        return Attempt(call, substitute, writes).graph();
    } catch (const std::exception& error) {
        return tl::make_unexpected(compile_report(error));
    }
}

// One tensor more than the call has arguments: most likely where the result goes.
bool may_write(const Substitute& substitute, const CallShape& call) {
    const auto required =
        std::count_if(substitute.parameters.begin(), substitute.parameters.end(),
                      [](const SubstituteParameter& one) { return !one.has_default; });
    const auto& arguments = call.function->getSchema().arguments();
    std::size_t needed = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        needed += is_default(arguments[i], call.constants[i]) ? 0 : 1;
    }
    return static_cast<std::size_t>(required) > needed;
}

}  // namespace

std::string CallShape::key() const {
    std::string text = function->qualname().qualifiedName();
    for (const auto& constant : constants) {
        std::string value = constant ? fmt::format("{}", c10::str(*constant)) : "";
        text += fmt::format("|{}:{}", constant ? constant->tagKind() : "", value);
    }
    return text;
}

CallShape shape_of(const jit::Node& call) {
    CallShape shape;
    shape.function = call.input(0)->type()->expectRef<c10::FunctionType>().function();
    for (const jit::Value* input : call.inputs().slice(1)) {
        auto constant = jit::toIValue(input);
        const bool plain =
            constant && (constant->isNone() || constant->isBool() || constant->isInt() ||
                         constant->isDouble() ||
                         (constant->isString() && constant->toStringRef().size() <= longest_text));
        shape.constants.push_back(plain ? constant : std::nullopt);
    }
    return shape;
}

tl::expected<jit::Function*, std::string> make_stand_in(jit::CompilationUnit& unit,
                                                        const c10::QualifiedName& name,
                                                        const CallShape& call,
                                                        const Substitutes& substitutes) {
    if (call.constants.size() != call.function->getSchema().arguments().size() ||
        call.function->getSchema().returns().size() != 1) {
        return tl::make_unexpected("the call does not fit the function's own signature");
    }
    std::vector<std::string> reasons;
    for (const Substitute& substitute : substitutes) {
        auto graph = attempt(call, substitute, false);
        std::string reason = graph ? "" : graph.error();
        if (!graph && may_write(substitute, call)) {
            graph = attempt(call, substitute, true);
            reason += graph ? "" : "; as one that writes into its result: " + graph.error();
        }
        if (graph) {
            return unit.create_function(unit.mangle(name), *graph);
        }
        reasons.push_back((substitutes.size() > 1 ? substitute.name + ": " : "") + reason);
    }
    return tl::make_unexpected(base::join(reasons, "; "));
}

}  // namespace twinkle::runtime
