#include "tuning/declaration.h"

#include <algorithm>

#include "base/text.h"
#include "tuning/comparison.h"

namespace twinkle::tuning {

using base::Json;

namespace {

// An argument or property by its name; none: the invocation has no such property.
const Json* value_of(const std::string& name, const Json& cfg, const Properties& properties) {
    if (const auto found = cfg.find(name); found != cfg.end()) {
        return &*found;
    }
    const auto property = properties.find(name);
    return property == properties.end() ? nullptr : &property->second;
}

bool all_hold(const std::vector<Condition>& conditions, const Json& cfg,
              const Properties& properties) {
    return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
        const Json* value = value_of(condition.name, cfg, properties);
        return value != nullptr && holds(*value, condition.comparison, condition.value);
    });
}

// None: not of integers, or more than fits.
std::optional<std::int64_t> folded(const Constraint& constraint, const Json& cfg,
                                   const Properties& properties) {
    const bool product = constraint.kind == Constraint::Kind::product;
    std::int64_t total = product ? 1 : 0;
    for (const std::string& name : constraint.names) {
        const Json* value = value_of(name, cfg, properties);
        if (value == nullptr || !value->is_number_integer()) {
            return std::nullopt;
        }
        const auto term = value->get<std::int64_t>();
        if (product ? __builtin_mul_overflow(total, term, &total)
                    : __builtin_add_overflow(total, term, &total)) {
            return std::nullopt;
        }
    }
    return total;
}

bool satisfied(const Constraint& constraint, const Json& cfg, const Properties& properties) {
    if (!all_hold(constraint.when, cfg, properties)) {
        return true;
    }
    const Json* bound = &constraint.bound;
    if (bound->is_string()) {
        const Json* named = value_of(bound->get_ref<const std::string&>(), cfg, properties);
        bound = named != nullptr ? named : bound;
    }
    if (constraint.kind == Constraint::Kind::value) {
        const Json* value = value_of(constraint.names.front(), cfg, properties);
        return value != nullptr && holds(*value, constraint.comparison, *bound);
    }
    const auto total = folded(constraint, cfg, properties);
    return total && holds(*total, constraint.comparison, *bound);
}

std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

Properties exact_properties(const Invocation& invocation) {
    Properties properties = {{"device", invocation.device}};
    const auto first =
        std::find_if(invocation.inputs.begin(), invocation.inputs.end(),
                     [](const AbstractInput& input) { return !input.layout.empty(); });
    if (first == invocation.inputs.end()) {
        return properties;
    }
    const std::int64_t columns = first->sizes.empty() ? 1 : first->sizes.back();
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < first->sizes.size(); ++i) {
        rows = saturated_product(rows, first->sizes[i]);
    }
    properties["columns"] = columns;
    properties["rows"] = rows;
    properties["elements"] = saturated_product(rows, columns);
    properties["dtype"] = first->dtype;
    if (first->alignment > 0) {
        properties["alignment"] = first->alignment;
    }
    return properties;
}

}  // namespace

const std::vector<std::string>& property_names() {
    static const std::vector<std::string> names = {"rows",      "columns", "elements",   "dtype",
                                                   "alignment", "device",  "cpu_threads"};
    return names;
}

Json Bucketing::apply(const Json& value) const {
    if (kind == Kind::exact || !value.is_number_integer()) {
        return value;
    }
    const auto size = value.get<std::int64_t>();
    if (kind == Kind::bounds) {
        const auto bound = std::lower_bound(bounds.begin(), bounds.end(), size);
        if (bound != bounds.end()) {
            return *bound;
        }
    }
    return size_bucket(size);
}

std::string Bucketing::text() const {
    switch (kind) {
        case Kind::exact: return "exact";
        case Kind::power_of_two: return "power-of-two";
        case Kind::bounds: break;
    }
    return base::json_line(bounds);
}

std::string Constraint::text() const {
    const auto word = [](const Json& value) {
        return value.is_string() ? base::printable(value.get<std::string>())
                                 : base::json_line(value);
    };
    std::string all = base::printable(base::join(names, kind == Kind::sum ? " + " : " * ")) +
                      " must be " + comparison_words(comparison) + word(bound);
    for (const Condition& one : when) {
        all += (&one == &when.front() ? " where " : " and ") + base::printable(one.name) + " is " +
               comparison_words(one.comparison) + word(one.value);
    }
    return all;
}

bool Tunable::allows(const Json& cfg, const Properties& properties) const {
    return std::all_of(constraints.begin(), constraints.end(), [&](const Constraint& constraint) {
        return satisfied(constraint, cfg, properties);
    });
}

const Constraint* Tunable::broken_by(const Json& cfg, const Properties& known) const {
    const auto is_open = [&](const std::string& name) {
        return value_of(name, cfg, known) == nullptr;
    };
    const auto is_name = [&](const std::string& text) {
        const auto& properties = property_names();
        return std::find(properties.begin(), properties.end(), text) != properties.end() ||
               std::any_of(arguments.begin(), arguments.end(),
                           [&](const TunableArgument& argument) { return argument.name == text; });
    };
    for (const Constraint& constraint : constraints) {
        const auto* bound = constraint.bound.get_ptr<const std::string*>();
        const bool decided =
            std::none_of(constraint.names.begin(), constraint.names.end(), is_open) &&
            (bound == nullptr || !is_name(*bound) || !is_open(*bound));
        if (decided && !satisfied(constraint, cfg, known)) {
            return &constraint;
        }
    }
    return nullptr;
}

std::vector<Json> Tunable::configurations(const Properties& properties) const {
    std::vector<Json> grid = {Json::object()};
    for (const TunableArgument& argument : arguments) {
        std::vector<Json> larger;
        for (const Json& cfg : grid) {
            for (const Json& value : argument.values) {
                larger.push_back(cfg);
                larger.back()[argument.name] = value;
            }
        }
        grid = std::move(larger);
    }
    std::erase_if(grid, [&](const Json& cfg) { return !allows(cfg, properties); });
    return grid;
}

std::optional<Json> Tunable::default_for(const Properties& properties) const {
    for (const DefaultRule& rule : defaults) {
        if (all_hold(rule.when, rule.cfg, properties) && allows(rule.cfg, properties)) {
            return rule.cfg;
        }
    }
    const auto all = configurations(properties);
    return all.empty() ? std::nullopt : std::optional(all.front());
}

Properties OperatorTuning::properties_of(const Invocation& invocation, int threads) const {
    Properties exact = exact_properties(invocation);
    if (threads > 0) {
        exact["cpu_threads"] = threads;
    }
    Properties known;
    for (const auto& [name, bucketing] : properties) {
        if (const auto found = exact.find(name); found != exact.end()) {
            known[name] = bucketing.apply(found->second);
        }
    }
    return known;
}

const OperatorTuning* Declaration::find(std::string_view operator_name) const {
    const auto found = std::find_if(operators.begin(), operators.end(),
                                    [&](const auto& one) { return one.name == operator_name; });
    return found == operators.end() ? nullptr : &*found;
}

}  // namespace twinkle::tuning
