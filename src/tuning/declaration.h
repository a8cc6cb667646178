#pragma once
// tuning.toml of a build: which arguments of its operators may be tuned, and by what of the inputs.
// It is data: nothing of it runs.
//
//     version = 1
//
//     [operators.rms_norm.properties]         # what of an input matters
//     rows = "power-of-two"                   # or "exact", or upper bounds of buckets: [64, 4096]
//     columns = "exact"
//
//     [operators.rms_norm.forward.arguments]  # the grid; backward has its own
//     threads = [128, 256, 512]
//     rows_per_block = [1, 2, 4]
//
//     [[operators.rms_norm.forward.constraints]]
//     product = ["threads", "rows_per_block"] # or value = "threads", or sum = […]
//     at_most = 1024                          # a number, an argument or a property
//     when = { device = "cuda" }              # where it holds; left out: everywhere
//
//     [operators.layer_norm]                  # all as of another one
//     like = "rms_norm"
//
//     [[operators.rms_norm.forward.defaults]] # the first that fits
//     when = { columns = { at_most = 1024 } }
//     cfg = { threads = 128, rows_per_block = 4 }
//     [[operators.rms_norm.forward.defaults]] # the last one has no `when`
//     cfg = { threads = 256, rows_per_block = 1 }

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "twinkle/invocation.h"

namespace twinkle::tuning {

// What is known of an invocation, in buckets: integers and texts.
using Properties = std::map<std::string, base::Json>;

// Returns those that a declaration may name.
const std::vector<std::string>&
property_names();  // rows, columns, elements, dtype, alignment, device, cpu_threads

struct Bucketing {
    enum class Kind { exact, power_of_two, bounds };
    Kind kind = Kind::exact;
    std::vector<std::int64_t> bounds{};  // ascending

    // Integers go up to the next bucket; beyond the last bound, to the next power of two.
    base::Json apply(const base::Json& value) const;
    std::string text() const;
};

enum class Comparison { at_most, at_least, equals, differs, multiple_of };

struct Condition {
    std::string name;  // of a property or an argument
    Comparison comparison = Comparison::equals;
    base::Json value;
};

struct Constraint {
    enum class Kind { value, product, sum };
    Kind kind = Kind::value;
    std::vector<std::string> names;  // of arguments and properties; one for `value`
    Comparison comparison = Comparison::at_most;
    base::Json bound;  // a plain value; a text that names an argument or property stands for it
    std::vector<Condition> when{};

    std::string text() const;  // "grain must be 0 where way is at least 1"
};

struct TunableArgument {
    std::string name;
    std::vector<base::Json> values;  // of one kind
};

struct DefaultRule {
    std::vector<Condition> when{};
    base::Json cfg;
};

// One direction of an operator.
struct Tunable {
    std::vector<TunableArgument> arguments;
    std::vector<Constraint> constraints;
    std::vector<DefaultRule> defaults;

    // All of the grid that the constraints allow, in its order.
    std::vector<base::Json> configurations(const Properties& properties) const;
    bool allows(const base::Json& cfg, const Properties& properties) const;
    // The first constraint that a configuration breaks by what is known of its calls; null: none.
    // An argument or property that is not given may be anything.
    const Constraint* broken_by(const base::Json& cfg, const Properties& known) const;
    // The configuration of the first rule that fits and is allowed, else the first allowed one in
    // the grid. None if the constraints leave nothing.
    std::optional<base::Json> default_for(const Properties& properties) const;
};

struct OperatorTuning {
    std::string name;
    int line = 0;
    std::map<std::string, Bucketing> properties{};
    std::optional<Tunable> forward{};
    std::optional<Tunable> backward{};

    // Describes the first tensor of the invocation: rows are all dimensions but the last.
    // `threads`: that its process computes with; 0: not known.
    Properties properties_of(const Invocation& invocation, int threads = 0) const;
};

struct Declaration {
    std::vector<OperatorTuning> operators;  // by name

    const OperatorTuning* find(std::string_view operator_name) const;
};

inline constexpr const char* declaration_name = "tuning.toml";
inline constexpr std::uint64_t largest_declaration = 1u << 20;
// Limits one direction, before constraints.
inline constexpr std::size_t most_configurations = 4096;

// Throws Error(malformed) with the place.
Declaration read_declaration(std::string_view text, std::string_view origin);

}  // namespace twinkle::tuning
