#include "project/attribute_table.h"

#include "base/text.h"

namespace twinkle::project {

using base::Node;
using base::TableReader;

std::map<std::string, AttributeValue> read_attributes(TableReader& reader, std::string_view key) {
    std::map<std::string, AttributeValue> result;
    const Node* table = reader.find(key);
    if (table == nullptr) {
        return result;
    }
    for (const auto& [name, at, value] : reader.as_table(*table, key).members) {
        switch (value.kind) {
            case Node::Kind::boolean: result[name] = value.boolean; break;
            case Node::Kind::integer: result[name] = value.integer; break;
            case Node::Kind::number: result[name] = value.number; break;
            case Node::Kind::string: result[name] = value.text; break;
            default:
                reader.fail(value, "\"" + base::printable(name) + "\" is " +
                                       std::string(base::kind_name(value.kind)) +
                                       ", not a truth value, number or string");
        }
    }
    return result;
}

std::map<std::string, std::vector<std::string>> read_string_lists(TableReader& reader,
                                                                  std::string_view key) {
    std::map<std::string, std::vector<std::string>> result;
    if (const Node* table = reader.find(key)) {
        for (const auto& [name, at, value] : reader.as_table(*table, key).members) {
            result[name] = reader.as_strings(value, name);
        }
    }
    return result;
}

}  // namespace twinkle::project
