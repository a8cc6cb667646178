#include "runtime/exported/guards.h"

#include "base/text.h"
#include "runtime/exported/checks.h"
#include "runtime/exported/size_expressions.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/frontend/schema_matching.h>

#include <limits>
#include <unordered_map>

namespace twinkle::runtime::exported {

namespace jit = torch::jit;

namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void refuse_condition(const std::string& condition, const std::string& why) {
    throw Error(ErrorCode::refused,
                {.what = "the exported model cannot be converted",
                 .where = base::printable(condition.substr(0, 300)),
                 .why = "this condition on sizes holds " + why +
                        ", which has no counterpart in TorchScript",
                 .hint = "export with sizes that are simpler: fixed, or free of conditions"});
}

class GuardWriter {
public:
    GuardWriter(jit::Graph& graph, const Program& program, const std::vector<Leaf>& leaves)
        : graph_(graph), program_(program), leaves_(leaves) {
        for (std::size_t i = 0; i < leaves_.size(); ++i) {
            inputs_.emplace(leaves_[i].source, leaves_[i].value);
            // Strict export counts the leaves.
            inputs_.emplace("['flat_args'][" + std::to_string(i) + "]", leaves_[i].value);
        }
        names_.input = [this](const std::string& source) {
            const auto found = inputs_.find(source);
            return found == inputs_.end() ? nullptr : found->second;
        };
    }

    void write() {
        for (const Leaf& leaf : leaves_) {
            if (leaf.spec->kind == InputSpec::Kind::user) {
                write_input(leaf);
            }
        }
        for (const Pending& pending : pending_) {
            write_expression(pending);
        }
        for (const std::string& guard : program_.guards) {
            write_condition(guard);
        }
    }

private:
    struct Pending {
        jit::Value* value;
        std::string name;
        std::string expression;
    };

    jit::Value* op(const char* name, const std::vector<jit::Value*>& values) {
        const std::vector<jit::NamedValue> given(values.begin(), values.end());
        return jit::emitBuiltinCall(jit::SourceRange(), graph_, c10::Symbol::fromQualString(name),
                                    given, {});
    }

    void require(const char* relation, jit::Value* value, std::int64_t bound,
                 const std::string& message) {
        write_check(graph_, op(relation, {value, graph_.insertConstant(bound)}),
                    message + ", but is {}", {value});
    }

    void write_input(const Leaf& leaf) {
        const std::string name = "the input " + plain(leaf.name);
        if (leaf.spec->value.kind == Argument::Kind::sym_int) {
            const auto symbol = program_.graph.symbols.find(leaf.spec->value.text);
            if (symbol != program_.graph.symbols.end()) {
                write_size(leaf.value, name, {std::nullopt, symbol->second});
            }
            return;
        }
        const auto meta = program_.graph.tensors.find(leaf.spec->value.text);
        if (leaf.spec->value.kind != Argument::Kind::tensor ||
            meta == program_.graph.tensors.end()) {
            return;
        }
        const auto rank = static_cast<std::int64_t>(meta->second.sizes.size());
        jit::Value* dimensions = op("aten::dim", {leaf.value});
        write_check(graph_, op("aten::eq", {dimensions, graph_.insertConstant(rank)}),
                    name + " must have " + std::to_string(rank) + " dimensions, but has {}",
                    {dimensions});
        for (std::int64_t i = 0; i < rank; ++i) {
            jit::Value* size = op("aten::size", {leaf.value, graph_.insertConstant(i)});
            write_size(size, "dimension " + std::to_string(i) + " of " + name,
                       meta->second.sizes[static_cast<std::size_t>(i)]);
        }
    }

    void write_size(jit::Value* size, const std::string& name, const Extent& extent) {
        if (extent.number) {
            require("aten::eq", size, *extent.number,
                    name + " must be " + std::to_string(*extent.number) +
                        ", as when the model was exported");
            return;
        }
        std::optional<std::string> symbol;
        try {
            symbol = SizeExpression(extent.expression).symbol();
        } catch (const UnknownExpression& unknown) {
            refuse_condition(extent.expression, unknown.what());
        }
        if (!symbol) {
            pending_.push_back({size, name, extent.expression});
        } else if (const auto [known, first] = names_.symbols.emplace(*symbol, size); first) {
            named_[*symbol] = name;
            write_range(*symbol, size, name);
        } else {
            write_check(graph_, op("aten::eq", {size, known->second}),
                        name + " must be as large as " + named_[*symbol] + ": {}, but is {}",
                        {known->second, size});
        }
    }

    void write_range(const std::string& symbol, jit::Value* size, const std::string& name) {
        const auto range = program_.ranges.find(symbol);
        if (range == program_.ranges.end()) {
            return;
        }
        const auto& [min, max] = range->second;
        if (min && *min > 2) {
            require("aten::ge", size, *min, name + " must be at least " + std::to_string(*min));
        }
        if (max && *max < largest - 1) {
            require("aten::le", size, *max, name + " must be at most " + std::to_string(*max));
        }
    }

    // 2·s + 1 says what s is, where no input is s itself.
    void solve(const Pending& pending, const SizeExpression& expression) {
        const auto linear = expression.linear();
        if (!linear || names_.symbols.contains(linear->symbol)) {
            return;
        }
        jit::Value* multiple =
            op("aten::sub", {pending.value, graph_.insertConstant(linear->offset)});
        jit::Value* symbol =
            op("aten::floordiv", {multiple, graph_.insertConstant(linear->factor)});
        names_.symbols.emplace(linear->symbol, symbol);
        named_[linear->symbol] = pending.name;
        write_range(linear->symbol, symbol, "the " + plain(linear->symbol) + " of " + pending.name);
    }

    void write_expression(const Pending& pending) {
        try {
            const SizeExpression expression(pending.expression);
            solve(pending, expression);
            jit::Value* wanted = expression.write(graph_, names_);
            write_check(graph_, op("aten::eq", {pending.value, wanted}),
                        pending.name + " must be {}, as the other sizes say, but is {}",
                        {wanted, pending.value});
        } catch (const UnknownExpression& unknown) {
            refuse_condition(pending.expression, unknown.what());
        }
    }

    void write_condition(const std::string& guard) {
        try {
            jit::Value* holds = SizeExpression(guard).write(graph_, names_);  // if it is not long
            write_check(graph_, holds,
                        "the inputs must fulfil " + plain(readable(guard)) +
                            ", as when the model was exported");
        } catch (const UnknownExpression& unknown) {
            refuse_condition(guard, unknown.what());
        }
    }

    // "L['x'].size()[0]" as "x.size()[0]".
    static std::string readable(std::string guard) {
        for (auto at = guard.find("L['"); at != std::string::npos; at = guard.find("L['", at)) {
            const auto end = guard.find("']", at);
            if (end == std::string::npos) {
                break;
            }
            guard.replace(at, end + 2 - at, guard.substr(at + 3, end - at - 3));
        }
        return guard;
    }

    jit::Graph& graph_;
    const Program& program_;
    const std::vector<Leaf>& leaves_;
    std::unordered_map<std::string, jit::Value*> inputs_;
    SizeExpression::Names names_;
    std::map<std::string, std::string> named_;
    std::vector<Pending> pending_;
};

}  // namespace

void write_guards(jit::Graph& graph, const Program& program, const std::vector<Leaf>& leaves) {
    GuardWriter(graph, program, leaves).write();
}

}  // namespace twinkle::runtime::exported
