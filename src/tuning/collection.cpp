#include "tuning/collection.h"

#include "base/quantity.h"
#include "tuning/json_reading.h"
#include "twinkle/error.h"

namespace twinkle::tuning {

using base::Json;
using base::Node;
using base::TableReader;

namespace {

constexpr const char* export_schema = "twinkle.tuning/2";
constexpr const char* first_export_schema = "twinkle.tuning/1";  // without baselines
constexpr base::JsonLimits export_limits{.bytes = largest_export, .depth = 12};

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

std::string export_text(const Entries& entries, std::string_view where, std::size_t largest) {
    std::string text = "{\n  \"environments\": [";
    std::string last;
    for (const auto& [identity, entry] : entries) {
        if (const std::string id = entry.environment.id(); id != last) {
            text += (last.empty() ? "\n" : "\n      ]\n    },\n") +
                    ("    {\n      \"id\": " + base::json_line(id)) +
                    ",\n      \"facts\": " + base::json_line(entry.environment.facts()) +
                    ",\n      \"entries\": [\n";
            last = id;
        } else {
            text += ",\n";
        }
        text += base::json_line(entry_json(entry));
        if (text.size() > largest) {
            break;
        }
    }
    text += last.empty() ? "]" : "\n      ]\n    }\n  ]";
    text += ",\n  \"schema\": " + base::json_line(export_schema) + "\n}\n";
    if (text.size() > largest) {
        throw Error(
            ErrorCode::refused,
            {.what = "the measurements are too many for one file",
             .where = std::string(where),
             .why = "an export has at most " + base::human_bytes(largest) + ", and " +
                    std::to_string(entries.size()) + " measurements take more",
             .hint = "merge fewer files, or forget what was measured (twinkle tune clear)"});
    }
    return text;
}

Entries read_export(std::string_view text, std::string_view origin) {
    const Node root = base::parse_json_document(text, origin, export_limits);
    TableReader reader(root, origin, "an export of measurements");
    const Node& said = reader.require("schema");
    const std::string schema = reader.as_string(said, "schema");
    if (schema != export_schema && schema != first_export_schema) {
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
