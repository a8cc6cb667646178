// [patterns].

#include <string>

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

void read_formulas(const Node& value, TableReader& reader, const DocumentPlace& place,
                   PatternBinding& binding) {
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

// Limits a document: each further table of a pattern has a copy of them.
constexpr std::size_t most_formulas = 10'000;

// `before`: the candidate in front of it, whose formulas it has if it names none.
PatternBinding read_pattern(const std::string& name, const Node& value, const DocumentPlace& place,
                            const PatternBinding* before) {
    TableReader reader(value, place.origin, "the pattern \"" + base::printable(name) + "\"");
    if (!is_name(name) || name.starts_with('_')) {
        reader.fail(value, "the name of a pattern is an identifier that begins with a letter");
    }
    PatternBinding binding;
    if (const Node* formulas = reader.find("pattern"); formulas == nullptr && before != nullptr) {
        binding.formula_file = before->formula_file;
        binding.formulas = before->formulas;
    } else {
        read_formulas(reader.require("pattern"), reader, place, binding);
    }
    binding.replacement = read_replacement(reader, name, value, place);
    return binding;
}

}  // namespace

std::vector<PatternBinding> read_patterns(const Node& table, const DocumentPlace& place) {
    const TableReader reader(table, place.origin, "the table of patterns");
    std::vector<PatternBinding> patterns;
    std::size_t formulas = 0;
    for (const auto& [name, at, value] : table.members) {
        const bool several = value.kind == Node::Kind::array;
        const std::size_t first = patterns.size();
        for (const Node& item : several ? value.items : std::vector{value}) {
            const PatternBinding* before = patterns.size() > first ? &patterns.back() : nullptr;
            patterns.push_back(read_pattern(name, item, place, before));
            formulas += patterns.back().formulas.size();
            if (formulas > most_formulas) {
                reader.fail(item, "patterns have more than " + std::to_string(most_formulas) +
                                      " formulas, counted in each of their tables");
            }
        }
    }
    return patterns;
}

}  // namespace twinkle::project
