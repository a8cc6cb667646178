#include "cli/tune_report.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/text.h"

namespace twinkle::cli {
namespace {

using base::Json;
using tuning::Entries;
using tuning::Entry;

using Group = std::vector<const Entry*>;

bool is_of_site(const Entry& entry) {
    return entry.invocation.extras.contains("original");
}

// Null: none was measured, or all are banned.
const Entry* fastest_of(const Group& group) {
    const Entry* fastest = nullptr;
    for (const Entry* entry : group) {
        const bool measured = entry->problem.empty() && entry->times.runs > 0;
        if (measured && (fastest == nullptr || entry->times.median < fastest->times.median)) {
            fastest = entry;
        }
    }
    return fastest;
}

// One entry per device, invocation and build: of an operation the configuration that is chosen. Of
// a site the fastest candidate, among all builds: which one serves a model depends on the order of
// its candidates, too.
std::set<Entry::Identity> best_of(const Entries& entries) {
    std::map<std::string, Group> groups;
    for (const auto& [identity, entry] : entries) {
        groups[std::get<0>(identity) + std::get<1>(identity) +
               (is_of_site(entry) ? "" : entry.candidate.build)]
            .push_back(&entry);
    }
    std::set<Entry::Identity> best;
    for (const auto& [name, group] : groups) {
        if (is_of_site(*group.front())) {
            if (const Entry* fastest = fastest_of(group)) {
                best.insert(fastest->identity());
            }
        } else if (const auto taken = tuning::choose(group); taken >= 0) {
            best.insert(group[static_cast<std::size_t>(taken)]->identity());
        }
    }
    return best;
}

// "float32[128,256] float32[256] float"
std::string inputs_text(const Invocation& invocation) {
    std::vector<std::string> all;
    for (const AbstractInput& input : invocation.inputs) {
        std::string text = input.dtype;
        if (!input.layout.empty()) {
            std::vector<std::string> sizes;
            for (const std::int64_t size : input.sizes) {
                sizes.push_back(std::to_string(size));
            }
            text += "[" + base::join(sizes, ",") + "]";
            text += input.layout == "dense" ? "" : " " + input.layout;
        } else if (!input.value.empty()) {
            text = input.value;
        }
        all.push_back(std::move(text));
    }
    return base::join(all, " ");
}

std::string cfg_text(const Json& cfg) {
    std::vector<std::string> all;
    for (const auto& [name, value] : cfg.items()) {
        all.push_back(name + "=" +
                      (value.is_string() ? value.get<std::string>() : base::json_line(value)));
    }
    return base::join(all, " ");
}

// "AMD EPYC, 4 threads", "2 NVIDIA H200"
std::string device_text(const Json& facts) {
    const auto text = [&](const Json& from, const char* key) {
        const auto found = from.find(key);
        return found == from.end()  ? std::string()
               : found->is_string() ? found->get<std::string>()
                                    : base::json_line(*found);
    };
    if (!facts.is_object()) {
        return "";
    }
    const auto gpus = facts.find("gpus");
    if (gpus == facts.end() || !gpus->is_array()) {
        return text(facts, "model") + ", " + text(facts, "threads") + " threads";
    }
    std::vector<std::string> all;
    for (const Json& gpu : *gpus) {
        if (gpu.is_object()) {
            all.push_back(text(gpu, "count") + " " + text(gpu, "name"));
        }
    }
    return all.empty() ? text(facts, "device") : base::join(all, ", ");
}

// "1.5 us (0.75)": as a part of its baseline.
std::string median_text(const tuning::Times& times) {
    if (times.runs == 0) {
        return "";
    }
    const auto median = static_cast<double>(times.median);
    std::string text = fmt::format("{:.3g} us", median / 1000);
    if (times.baseline > 0 && times.baseline != times.median) {
        text += fmt::format(" ({:.2f})", median / static_cast<double>(times.baseline));
    }
    return text;
}

}  // namespace

base::Table measurements_table(const Entries& entries) {
    using base::Style;
    using base::Table;
    Table table({{"operation", Table::Align::left, Table::Fit::wrap},
                 {"inputs", Table::Align::left, Table::Fit::wrap},
                 {"mode"},
                 {"configuration", Table::Align::left, Table::Fit::wrap},
                 {"time", Table::Align::right},
                 {"runs", Table::Align::right},
                 {"is"},
                 {"device", Table::Align::left, Table::Fit::wrap}});
    const auto best = best_of(entries);
    for (const auto& [identity, entry] : entries) {
        const bool taken = best.contains(identity);
        const bool banned = !entry.problem.empty();
        table.add({{entry.invocation.operation},
                   {inputs_text(entry.invocation)},
                   {std::string(run_mode_name(entry.invocation.mode)) +
                    (entry.invocation.captured ? ", captured" : "")},
                   {entry.candidate.role == tuning::Role::original ? "original"
                                                                   : cfg_text(entry.candidate.cfg)},
                   {median_text(entry.times)},
                   {std::to_string(entry.times.runs)},
                   {taken    ? (is_of_site(entry) ? "fastest" : "chosen")
                    : banned ? entry.problem
                             : "",
                    taken    ? Style::green
                    : banned ? Style::yellow
                             : Style::plain},
                   {device_text(entry.environment.facts())}});
    }
    return table;
}

Json measurements_json(const std::filesystem::path& root, const Entries& entries) {
    const auto best = best_of(entries);
    Json list = Json::array();
    for (const auto& [identity, entry] : entries) {
        Json json = tuning::entry_json(entry);
        json["environment"] = entry.environment.facts();
        json["problem"] = entry.problem.empty() ? Json() : Json(entry.problem);
        json["chosen"] = !is_of_site(entry) && best.contains(identity);
        json["fastest"] = is_of_site(entry) && best.contains(identity);
        list.push_back(std::move(json));
    }
    return {{"dir", root.string()}, {"measurements", list}};
}

}  // namespace twinkle::cli
