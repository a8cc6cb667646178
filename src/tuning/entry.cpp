#include "tuning/entry.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/sha256.h"
#include "tuning/choice_by_size.h"
#include "tuning/json_reading.h"
#include "twinkle/error.h"

namespace twinkle::tuning {

using base::Json;
using base::Node;
using base::TableReader;

namespace {

constexpr const char* entry_schema = "twinkle.tuned/2";
constexpr std::string_view first_schema = "twinkle.tuned/1";  // without baselines
constexpr std::string_view schema_family = "twinkle.tuned/";

constexpr std::array role_names{std::pair(Role::original, std::string_view("original")),
                                std::pair(Role::rule, std::string_view("rule")),
                                std::pair(Role::other, std::string_view("other"))};

std::string_view role_name(Role role) {
    return role_names.at(static_cast<std::size_t>(role)).second;
}

Role read_role(TableReader& reader) {
    const Node& node = reader.require("role");
    const std::string text = reader.as_string(node, "role");
    for (const auto& [role, name] : role_names) {
        if (text == name) {
            return role;
        }
    }
    reader.fail(node, "a role is original, rule or other");
}

constexpr std::int64_t longest_time = 24LL * 3600 * 1'000'000'000;  // ns

Times read_times(const Node& node, std::string_view origin) {
    TableReader reader(node, origin, "the times");
    Times times{required_count(reader, "lower_ns"), required_count(reader, "median_ns"),
                required_count(reader, "upper_ns"), required_count(reader, "runs")};
    if (node.find("baseline_ns") != nullptr) {
        times.baseline = required_count(reader, "baseline_ns");
    }
    reader.finish();
    if (times.lower > times.median || times.median > times.upper) {
        reader.fail(node, "the median lies outside of the bounds");
    }
    if (std::max(times.upper, times.baseline) > longest_time) {
        reader.fail(node, "a run takes no longer than a day");
    }
    return times;
}

Candidate read_candidate(const Node& node, std::string_view origin) {
    TableReader reader(node, origin, "a candidate");
    Candidate candidate;
    candidate.build = reader.required_string("build");
    candidate.cfg = flat_table(reader.require("cfg"), origin, "a configuration");
    candidate.role = read_role(reader);
    reader.finish();
    return candidate;
}

// The facts are data to compare, not to act on: any JSON of little depth.
Json facts_of(const Node& node) {
    switch (node.kind) {
        case Node::Kind::boolean: return node.boolean;
        case Node::Kind::integer: return node.integer;
        case Node::Kind::number: return node.number;
        case Node::Kind::string: return node.text;
        case Node::Kind::array: {
            Json list = Json::array();
            for (const Node& item : node.items) {
                list.push_back(facts_of(item));
            }
            return list;
        }
        case Node::Kind::table: {
            Json table = Json::object();
            for (const base::Member& member : node.members) {
                table[member.key] = facts_of(member.value);
            }
            return table;
        }
        default: return nullptr;
    }
}

std::string checksum(const Json& whole) {
    return base::sha256_hex(base::json_line(whole));
}

Entry read_whole(const Node& root, std::string_view origin) {
    TableReader reader(root, origin, "an entry");
    reader.find("schema");
    const std::string sum = reader.required_string("checksum");
    const Environment environment = read_environment(reader.require("environment"), origin);
    Entry entry = read_entry(reader.require("measurement"), environment, origin);
    reader.finish();
    if (checksum(entry_json(entry)) != sum) {
        reader.fail(root, "its checksum is another one");
    }
    return entry;
}

}  // namespace

Environment read_environment(const Node& node, std::string_view origin) {
    const TableReader reader(node, origin, "an environment");
    return Environment(facts_of(node));
}

Json entry_json(const Entry& entry) {
    Json json = {{"invocation", invocation_json(entry.invocation)},
                 {"candidate",
                  {{"build", entry.candidate.build},
                   {"cfg", entry.candidate.cfg},
                   {"role", role_name(entry.candidate.role)}}},
                 {"times",
                  {{"lower_ns", entry.times.lower},
                   {"median_ns", entry.times.median},
                   {"upper_ns", entry.times.upper},
                   {"runs", entry.times.runs}}}};
    if (entry.times.baseline > 0) {
        json["times"]["baseline_ns"] = entry.times.baseline;
    }
    if (!entry.problem.empty()) {
        json["problem"] = entry.problem;
    }
    return json;
}

Entry read_entry(const Node& node, const Environment& environment, std::string_view origin) {
    TableReader reader(node, origin, "a measurement");
    Entry entry{environment, read_invocation(reader.require("invocation"), origin),
                read_candidate(reader.require("candidate"), origin)};
    entry.times = read_times(reader.require("times"), origin);
    entry.problem = reader.string("problem").value_or("");
    reader.finish();
    if (entry.problem.empty() && (entry.times.runs < 1 || entry.times.lower < 1)) {
        reader.fail(node, "it has neither times nor a problem");
    }
    return entry;
}

std::string Entry::text() const {
    return environment.id() + base::json_line(entry_json(*this));
}

bool is_better_measured(const Entry& one, const Entry& other) {
    const auto rank = [](const Entry& entry) {
        return std::tuple(!entry.problem.empty(), entry.times.runs,
                          entry.times.lower - entry.times.upper);
    };
    const auto ours = rank(one);
    const auto theirs = rank(other);
    return ours != theirs ? ours > theirs : one.text() < other.text();
}

void join(Entries& all, Entry entry) {
    const auto [place, added] = all.try_emplace(entry.identity(), entry);
    if (!added && is_better_measured(entry, place->second)) {
        place->second = std::move(entry);
    }
}

std::string entry_file(const Entry& entry) {
    const Json measurement = entry_json(entry);
    return base::dump_json({{"schema", entry_schema},
                            {"environment", entry.environment.facts()},
                            {"measurement", measurement},
                            {"checksum", checksum(measurement)}});
}

std::optional<Entry> read_entry_file(std::string_view text, std::string_view origin,
                                     Rejected& rejected) {
    if (text.size() > entry_limits.bytes) {
        rejected = {Miss::too_large, "it is larger than an entry can be"};
        return std::nullopt;
    }
    try {
        const Node root = base::parse_json_document(text, origin, entry_limits);
        const Node* said = root.find("schema");
        const bool known =
            said != nullptr && (said->text == entry_schema || said->text == first_schema);
        if (said != nullptr && !known && said->text.starts_with(schema_family)) {
            rejected = {Miss::other_version, "another version of twinkle has written it"};
            return std::nullopt;
        }
        if (!known) {
            rejected = {Miss::damaged, "it is no entry"};
            return std::nullopt;
        }
        return read_whole(root, origin);
    } catch (const Error& error) {
        const ErrorDetails& details = error.details();
        rejected = {Miss::damaged, details.what + (details.why.empty() ? "" : ": " + details.why)};
        return std::nullopt;
    }
}

Times beside(const Times& times, std::int64_t baseline) {
    if (times.baseline <= 0 || baseline <= 0 || times.baseline == baseline) {
        return times;
    }
    const double factor = static_cast<double>(baseline) / static_cast<double>(times.baseline);
    const auto scaled = [&](std::int64_t one) {
        constexpr double most = 9e18;  // times from outside may be as large as they like
        return std::llround(std::min(factor * static_cast<double>(one), most));
    };
    return {scaled(times.lower), scaled(times.median), scaled(times.upper), times.runs, baseline};
}

bool is_as_fast(const Times& one, const Times& other) {
    // Without overflow: times from outside may be as large as they like.
    return static_cast<double>(one.median) <= 1.02 * static_cast<double>(other.median);
}

bool surely_slower(const Times& one, const Times& other) {
    return one.lower > other.upper && !is_as_fast(one, other);
}

namespace {

// The baseline of the first entry that has one. If the first entry is the original or the rule, and
// from before baselines were stored, its own median.
std::int64_t common_baseline(const std::vector<const Entry*>& entries,
                             const std::vector<std::size_t>& order) {
    const Entry& first = *entries[order.front()];
    if (first.times.baseline == 0 && first.candidate.role != Role::other) {
        return first.times.median;
    }
    for (const std::size_t i : order) {
        if (entries[i]->times.baseline > 0) {
            return entries[i]->times.baseline;
        }
    }
    return 0;
}

}  // namespace

std::ptrdiff_t choose(const std::vector<const Entry*>& entries) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i]->problem.empty() && entries[i]->times.runs > 0) {
            order.push_back(i);
        }
    }
    if (order.empty()) {
        return -1;
    }
    const auto place = [&](std::size_t i) {
        return std::tuple(entries[i]->candidate.role, entries[i]->candidate.id());
    };
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
    const std::int64_t baseline = common_baseline(entries, order);
    std::vector<std::optional<Times>> times;
    for (const std::size_t i : order) {
        times.emplace_back(beside(entries[i]->times, baseline));
    }
    return static_cast<std::ptrdiff_t>(order[static_cast<std::size_t>(first_not_slower(times))]);
}

}  // namespace twinkle::tuning
