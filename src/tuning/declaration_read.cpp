#include <algorithm>

#include "base/text.h"
#include "base/toml.h"
#include "tuning/comparison.h"
#include "tuning/declaration.h"
#include "tuning/json_reading.h"

namespace twinkle::tuning {
namespace {

using base::Json;
using base::Node;
using base::TableReader;

bool is_plain(const Node& node) {
    return node.kind == Node::Kind::boolean || node.kind == Node::Kind::integer ||
           node.kind == Node::Kind::string;
}

Json plain(const Node& node) {
    return node.kind == Node::Kind::boolean   ? Json(node.boolean)
           : node.kind == Node::Kind::integer ? Json(node.integer)
                                              : Json(node.text);
}

class DirectionReader {
public:
    DirectionReader(std::string_view origin, const OperatorTuning& of, std::string what)
        : origin_(origin), operator_(of), what_(std::move(what)) {}

    Tunable read(const Node& node) {
        TableReader reader(node, origin_, what_);
        read_arguments(reader.require("arguments"));
        if (const Node* constraints = reader.find("constraints")) {
            for (const Node& one : reader.as_array(*constraints, "constraints").items) {
                tunable_.constraints.push_back(read_constraint(one));
            }
        }
        const Node& defaults = reader.require("defaults");
        for (const Node& one : reader.as_array(defaults, "defaults").items) {
            tunable_.defaults.push_back(read_default(one));
        }
        if (tunable_.defaults.empty() || !tunable_.defaults.back().when.empty()) {
            reader.fail(defaults, "the last default must hold everywhere",
                        "add a default without `when`");
        }
        reader.finish();
        return std::move(tunable_);
    }

private:
    void read_arguments(const Node& node) {
        const TableReader reader(node, origin_, "the arguments of " + what_);
        std::size_t configurations = 1;
        for (const base::Member& member : node.members) {
            if (is_property(member.key)) {
                reader.fail(member.value, "\"" + base::printable(member.key) +
                                              "\" is a property of inputs, not an argument");
            }
            TunableArgument argument{member.key, {}};
            for (const Node& value : reader.as_array(member.value, member.key).items) {
                argument.values.push_back(read_value(reader, value, argument));
            }
            if (argument.values.empty()) {
                reader.fail(member.value, "an argument has at least one value");
            }
            configurations *= argument.values.size();
            if (argument.values.size() > most_configurations ||
                configurations > most_configurations) {
                reader.fail(member.value, "the grid has more than " +
                                              std::to_string(most_configurations) +
                                              " configurations");
            }
            tunable_.arguments.push_back(std::move(argument));
        }
        if (tunable_.arguments.empty()) {
            reader.fail(node, "there is no argument to tune");
        }
    }

    static Json read_value(const TableReader& reader, const Node& node,
                           const TunableArgument& argument) {
        if (!is_plain(node)) {
            reader.fail(node, "values are truth values, integers or texts");
        }
        Json value = plain(node);
        for (const Json& other : argument.values) {
            if (other.type() != value.type()) {
                reader.fail(node, "the values of an argument are of one kind");
            }
            if (other == value) {
                reader.fail(node, "the value is there twice");
            }
        }
        return value;
    }

    bool is_argument(const std::string& name) const {
        return std::any_of(tunable_.arguments.begin(), tunable_.arguments.end(),
                           [&](const auto& argument) { return argument.name == name; });
    }
    bool is_property(const std::string& name) const { return operator_.properties.contains(name); }

    void require_name(const TableReader& reader, const Node& at, const std::string& name,
                      bool arguments) const {
        if (is_property(name) || (arguments && is_argument(name))) {
            return;
        }
        std::vector<std::string> known;
        for (const auto& [property, bucketing] : operator_.properties) {
            known.push_back(property);
        }
        for (const TunableArgument& argument : tunable_.arguments) {
            if (arguments) {
                known.push_back(argument.name);
            }
        }
        reader.fail(at,
                    "there is no " + std::string(arguments ? "argument or " : "") + "property \"" +
                        base::printable(name) + "\" here",
                    known.empty() ? "declare it under properties"
                                  : "there are: " + base::join(known, ", "));
    }

    // when = { device = "cuda", columns = { at_most = 1024, multiple_of = 8 } }
    std::vector<Condition> read_conditions(const Node& node, bool arguments) const {
        const TableReader reader(node, origin_, "`when`");
        std::vector<Condition> conditions;
        for (const base::Member& member : node.members) {
            require_name(reader, member.value, member.key, arguments);
            if (is_plain(member.value)) {
                conditions.push_back({member.key, Comparison::equals, plain(member.value)});
                continue;
            }
            const TableReader comparisons(member.value, origin_, "a comparison");
            for (const base::Member& one : member.value.members) {
                conditions.push_back(
                    {member.key, read_comparison(comparisons, one), read_bound(comparisons, one)});
            }
        }
        return conditions;
    }

    static Comparison read_comparison(const TableReader& reader, const base::Member& member) {
        const auto comparison = comparison_named(member.key);
        if (!comparison) {
            reader.fail(member.value,
                        "there is no comparison \"" + base::printable(member.key) + "\"",
                        "there are: " + comparison_names());
        }
        return *comparison;
    }

    static Json read_bound(const TableReader& reader, const base::Member& member) {
        if (!is_plain(member.value)) {
            reader.fail(member.value, "a value is compared with a plain one");
        }
        if (member.key == "multiple_of" && member.value.kind == Node::Kind::integer &&
            member.value.integer < 1) {
            reader.fail(member.value, "a multiple is of 1 or more");
        }
        return plain(member.value);
    }

    Constraint read_constraint(const Node& node) const {
        TableReader reader(node, origin_, "a constraint");
        Constraint constraint;
        int terms = 0;
        if (const auto value = reader.string("value")) {
            constraint.names = {*value};
            ++terms;
        }
        for (const auto& [key, kind] : {std::pair("product", Constraint::Kind::product),
                                        std::pair("sum", Constraint::Kind::sum)}) {
            if (reader.find(key) != nullptr) {
                constraint.kind = kind;
                constraint.names = reader.strings(key);
                ++terms;
            }
        }
        if (terms != 1 || constraint.names.empty()) {
            reader.fail(node, "a constraint has one of value, product and sum");
        }
        for (const std::string& name : constraint.names) {
            require_name(reader, node, name, true);
        }
        if (const Node* when = reader.find("when")) {
            constraint.when = read_conditions(*when, true);
        }
        read_one_comparison(reader, node, constraint);
        return constraint;
    }

    void read_one_comparison(TableReader& reader, const Node& node, Constraint& constraint) const {
        int comparisons = 0;
        for (const base::Member& member : node.members) {
            if (const auto comparison = comparison_named(member.key)) {
                reader.find(member.key);
                constraint.comparison = *comparison;
                constraint.bound = read_bound(reader, member);
                ++comparisons;
            }
        }
        reader.finish();
        if (comparisons != 1) {
            reader.fail(node, "a constraint has one comparison", "one of: " + comparison_names());
        }
    }

    DefaultRule read_default(const Node& node) const {
        TableReader reader(node, origin_, "a default");
        DefaultRule rule;
        if (const Node* when = reader.find("when")) {
            rule.when = read_conditions(*when, false);
        }
        const Node& cfg = reader.require("cfg");
        rule.cfg = flat_table(cfg, origin_, "a configuration");
        for (const auto& [name, value] : rule.cfg.items()) {
            if (!is_argument(name)) {
                reader.fail(*cfg.find(name),
                            "\"" + base::printable(name) + "\" is no argument of " + what_);
            }
        }
        for (const TunableArgument& argument : tunable_.arguments) {
            const Node* value = cfg.find(argument.name);
            if (value == nullptr) {
                reader.fail(cfg,
                            "it lacks the argument \"" + base::printable(argument.name) + "\"");
            }
            const Json& given = rule.cfg[argument.name];
            if (std::find(argument.values.begin(), argument.values.end(), given) ==
                argument.values.end()) {
                reader.fail(*value, "it is none of the values of \"" +
                                        base::printable(argument.name) + "\"");
            }
        }
        reader.finish();
        return rule;
    }

    std::string_view origin_;
    const OperatorTuning& operator_;
    std::string what_;
    Tunable tunable_;
};

Bucketing read_bucketing(const TableReader& reader, const base::Member& member) {
    const Node& node = member.value;
    if (node.kind == Node::Kind::string && node.text == "exact") {
        return {};
    }
    if (member.key == "dtype" || member.key == "device") {
        reader.fail(node, "of a " + member.key + " there are no buckets: \"exact\"");
    }
    if (node.kind == Node::Kind::string && node.text == "power-of-two") {
        return {Bucketing::Kind::power_of_two};
    }
    if (node.kind != Node::Kind::array || node.items.empty()) {
        reader.fail(node, "buckets are \"exact\", \"power-of-two\" or a list of upper bounds");
    }
    Bucketing bucketing{Bucketing::Kind::bounds};
    for (const Node& bound : node.items) {
        const bool rises = bucketing.bounds.empty() || bound.integer > bucketing.bounds.back();
        if (bound.kind != Node::Kind::integer || bound.integer < 1 || !rises) {
            reader.fail(bound, "bounds are integers that rise, from 1 on");
        }
        bucketing.bounds.push_back(bound.integer);
    }
    return bucketing;
}

OperatorTuning read_operator(const base::Member& member, std::string_view origin) {
    TableReader reader(member.value, origin, "an operator");
    OperatorTuning tuning{.name = member.key, .line = static_cast<int>(member.at.line)};
    if (const Node* properties = reader.find("properties")) {
        for (const base::Member& property : reader.as_table(*properties, "properties").members) {
            const auto& names = property_names();
            if (std::find(names.begin(), names.end(), property.key) == names.end()) {
                reader.fail(property.value,
                            "there is no property \"" + base::printable(property.key) + "\"",
                            "there are: " + base::join(names, ", "));
            }
            tuning.properties[property.key] = read_bucketing(reader, property);
        }
    }
    for (auto [key, direction] :
         {std::pair("forward", &tuning.forward), std::pair("backward", &tuning.backward)}) {
        if (const Node* node = reader.find(key)) {
            DirectionReader directions(origin, tuning, base::printable(member.key) + "." + key);
            *direction = directions.read(*node);
        }
    }
    if (!tuning.forward && !tuning.backward) {
        reader.fail(member.value, "an operator has forward, backward or both");
    }
    reader.finish();
    return tuning;
}

OperatorTuning read_like(const base::Member& member, const Declaration& known,
                         std::string_view origin) {
    TableReader reader(member.value, origin, "an operator");
    const std::string name = reader.required_string("like");
    reader.finish();
    const auto other = std::find_if(known.operators.begin(), known.operators.end(),
                                    [&](const auto& one) { return one.name == name; });
    if (other == known.operators.end()) {
        reader.fail(member.value, "there is no operator \"" + base::printable(name) +
                                      "\" with a tuning of its own");
    }
    OperatorTuning tuning = *other;
    tuning.name = member.key;
    tuning.line = static_cast<int>(member.at.line);
    return tuning;
}

}  // namespace

Declaration read_declaration(std::string_view text, std::string_view origin) {
    const Node root = base::parse_toml_document(text, origin);
    TableReader reader(root, origin, "the tuning of a build");
    const Node& version = reader.require("version");
    if (version.kind != Node::Kind::integer || version.integer != 1) {
        reader.fail(version, "the version must be 1", "a newer twinkle may know it");
    }
    Declaration declaration;
    const Node& operators = reader.as_table(reader.require("operators"), "operators");
    for (const base::Member& one : operators.members) {
        if (one.value.find("like") == nullptr) {
            declaration.operators.push_back(read_operator(one, origin));
        }
    }
    for (const base::Member& one : operators.members) {
        if (one.value.find("like") != nullptr) {
            declaration.operators.push_back(read_like(one, declaration, origin));
        }
    }
    reader.finish();
    std::sort(declaration.operators.begin(), declaration.operators.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return declaration;
}

}  // namespace twinkle::tuning
