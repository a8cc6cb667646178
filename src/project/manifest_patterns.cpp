// [patterns].

#include "base/text.h"
#include "project/manifest_sections.h"

namespace twinkle::project {

using base::Node;
using base::TableReader;

std::optional<std::pair<std::filesystem::path, std::string>> parse_formula(
    const std::string& text, const std::filesystem::path& folder) {
    const auto colon = text.rfind(':');
    if (colon == std::string::npos || !text.substr(0, colon).ends_with(".py") ||
        !is_name(text.substr(colon + 1))) {
        return std::nullopt;
    }
    return std::pair((folder / text.substr(0, colon)).lexically_normal(), text.substr(colon + 1));
}

namespace {

void read_formulas(TableReader& reader, const DocumentPlace& place, PatternBinding& binding) {
    const Node& value = reader.require("pattern");
    const auto texts = value.kind == Node::Kind::string
                           ? std::vector{reader.as_string(value, "pattern")}
                           : reader.as_strings(value, "pattern");
    for (const std::string& text : texts) {
        const auto formula = parse_formula(text, place.folder);
        if (!formula || (!binding.formulas.empty() && binding.formula_file != formula->first)) {
            reader.fail(value, std::string(pattern_forms));
        }
        binding.formula_file = formula->first;
        binding.formulas.push_back(formula->second);
    }
    if (binding.formulas.empty()) {
        reader.fail(value, "\"pattern\" is empty");
    }
}

PatternBinding read_pattern(const std::string& name, const Node& value,
                            const DocumentPlace& place) {
    TableReader reader(value, place.origin, "the pattern \"" + base::printable(name) + "\"");
    if (!is_name(name) || name.starts_with('_')) {
        reader.fail(value, "the name of a pattern is an identifier that begins with a letter");
    }
    PatternBinding binding;
    read_formulas(reader, place, binding);
    binding.replacement = read_replacement(reader, name, value, place);
    return binding;
}

}  // namespace

std::vector<PatternBinding> read_patterns(const Node& table, const DocumentPlace& place) {
    const TableReader reader(table, place.origin, "the table of patterns");
    return read_bindings(table, place, read_pattern);
}

}  // namespace twinkle::project
