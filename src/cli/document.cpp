#include "cli/document.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"

namespace twinkle::cli {
namespace {

using base::Json;
using base::Table;

std::string value_text(const Json& value) {
    switch (value.type()) {
        case Json::value_t::null: return "";
        case Json::value_t::boolean: return value.get<bool>() ? "yes" : "no";
        case Json::value_t::number_float: return fmt::format("{:.4g}", value.get<double>());
        case Json::value_t::string: return base::printable(value.get_ref<const std::string&>());
        case Json::value_t::array: {
            std::vector<std::string> parts;
            for (const auto& item : value) {
                parts.push_back(value_text(item));
            }
            return base::join(parts, ", ");
        }
        default: return base::json_line(value);
    }
}

std::string words(std::string key) {
    std::replace(key.begin(), key.end(), '_', ' ');
    return base::printable(key);
}

bool is_table(const Json& value) {
    return value.is_array() && !value.empty() &&
           std::all_of(value.begin(), value.end(),
                       [](const Json& item) { return item.is_object(); });
}

// A column for every key in any row; a name, if there is one, comes first.
std::string table_text(const Json& rows, std::size_t columns, bool color) {
    std::vector<std::string> keys;
    const auto add = [&](const std::string& key) {
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
            keys.insert(key == "name" ? keys.begin() : keys.end(), key);
        }
    };
    for (const auto& row : rows) {
        for (const auto& item : row.items()) {
            add(item.key());
        }
    }
    std::vector<Table::Column> titles;
    for (const auto& key : keys) {
        titles.push_back({words(key), Table::Align::left, Table::Fit::wrap});
    }
    Table table(std::move(titles));
    for (const auto& row : rows) {
        std::vector<Table::Cell> cells;
        for (const auto& key : keys) {
            cells.emplace_back(row.contains(key) ? value_text(row[key]) : "");
        }
        table.add(std::move(cells));
    }
    return table.render(columns, color);
}

}  // namespace

std::string document_text(const Json& document, std::size_t columns, bool color) {
    std::string facts, sections;
    for (const auto& item : document.items()) {
        const auto title = words(item.key());
        if (item.key() == "schema") {
            continue;
        }
        if (is_table(item.value())) {
            sections += "\n" + base::styled(title, base::Style::bold, color) + "\n" +
                        table_text(item.value(), columns, color);
        } else if (const auto text = value_text(item.value()); !text.empty()) {
            facts += title + ": " + text + "\n";
        }
    }
    return facts + sections.substr(facts.empty() && !sections.empty() ? 1 : 0);
}

}  // namespace twinkle::cli
