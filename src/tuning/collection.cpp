#include "tuning/collection.h"

#include "tuning/json_reading.h"

namespace twinkle::tuning {

using base::Json;
using base::Node;
using base::TableReader;

namespace {

constexpr const char* export_schema = "twinkle.tuning/1";
constexpr base::JsonLimits export_limits{.bytes = 64u << 20, .depth = 12};

void read_environment_into(const Node& node, std::string_view origin, Entries& entries) {
    TableReader reader(node, origin, "an environment");
    const Node& name = reader.require("id");
    const Environment environment = read_environment(reader.require("facts"), origin);
    if (reader.as_string(name, "id") != environment.id()) {
        reader.fail(name, "the id is not that of the facts");
    }
    for (const Node& entry : reader.as_array(reader.require("entries"), "entries").items) {
        join(entries, read_entry(entry, environment, origin));
    }
    reader.finish();
}

}  // namespace

std::string export_text(const Entries& entries) {
    Json environments = Json::array();
    std::string last;
    for (const auto& [identity, entry] : entries) {
        if (environments.empty() || entry.environment.id() != last) {
            last = entry.environment.id();
            environments.push_back(
                {{"id", last}, {"facts", entry.environment.facts()}, {"entries", Json::array()}});
        }
        environments.back()["entries"].push_back(entry_json(entry));
    }
    return base::dump_json({{"schema", export_schema}, {"environments", environments}});
}

Entries read_export(std::string_view text, std::string_view origin) {
    const Node root = base::parse_json_document(text, origin, export_limits);
    TableReader reader(root, origin, "an export of measurements");
    const Node& said = reader.require("schema");
    if (reader.as_string(said, "schema") != export_schema) {
        reader.fail(said, "the schema must be \"" + std::string(export_schema) + "\"",
                    "twinkle tune export writes such files");
    }
    Entries entries;
    for (const Node& one : reader.as_array(reader.require("environments"), "environments").items) {
        read_environment_into(one, origin, entries);
    }
    reader.finish();
    return entries;
}

}  // namespace twinkle::tuning
