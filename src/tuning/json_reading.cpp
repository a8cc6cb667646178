#include "tuning/json_reading.h"

#include <cmath>

namespace twinkle::tuning {

using base::Json;
using base::Node;

Json flat_table(const Node& node, std::string_view origin, std::string_view what) {
    const base::TableReader reader(node, origin, what);
    Json table = Json::object();
    for (const base::Member& member : node.members) {
        Json& value = table[member.key];
        switch (member.value.kind) {
            case Node::Kind::boolean: value = member.value.boolean; break;
            case Node::Kind::integer: value = member.value.integer; break;
            case Node::Kind::string: value = member.value.text; break;
            case Node::Kind::number:
                if (!std::isfinite(member.value.number)) {
                    reader.fail(member.value, "a number must be finite");
                }
                value = member.value.number;
                break;
            default:
                reader.fail(member.value, std::string(what) + " holds plain values, not " +
                                              std::string(base::kind_name(member.value.kind)));
        }
    }
    return table;
}

std::int64_t required_count(base::TableReader& reader, std::string_view key) {
    reader.require(key);
    return *reader.integer(key, 0, INT64_MAX);
}

}  // namespace twinkle::tuning
