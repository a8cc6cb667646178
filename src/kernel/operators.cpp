#include "kernel/operators.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "binary/constant_strings.h"
#include "kernel/schema.h"

namespace twinkle::kernel {
namespace {

// A package's calls of operators, "ops.name(…)": with how many arguments, where the text tells it.
using Calls = std::map<std::string, std::set<std::size_t>, std::less<>>;

// The arguments of a call whose opening parenthesis is at `open`. None: not all are written there
// one by one.
std::optional<std::size_t> count_arguments(std::string_view text, std::size_t open) {
    constexpr std::size_t longest = 1000;
    text = text.substr(0, std::min(text.size(), open + longest));
    std::size_t count = 0;
    int depth = 0;
    bool begun = false;  // the argument
    for (std::size_t at = open; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '\'' || c == '"' || c == '#' || c == '\\' || (c == '*' && depth == 1 && !begun)) {
            return std::nullopt;
        }
        if (c == '(' || c == '[' || c == '{') {
            begun = begun || depth > 0;
            ++depth;
        } else if (c == ')' || c == ']' || c == '}') {
            if (--depth == 0) {
                return count + (begun ? 1 : 0);
            }
        } else if (c == ',' && depth == 1) {
            count += std::exchange(begun, false) ? 1 : 0;
        } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
            begun = true;
        }
    }
    return std::nullopt;
}

Calls find_calls(const PackageSources& sources) {
    constexpr std::string_view marker = "ops.";
    Calls calls;
    for (const auto& [path, text] : sources) {
        for (std::size_t at = text.find(marker); at != std::string::npos;
             at = text.find(marker, at)) {
            at += marker.size();
            std::size_t end = at;
            while (end < text.size() && is_word(text[end])) {
                ++end;
            }
            auto& counts = calls[text.substr(at, end - at)];
            if (end < text.size() && text[end] == '(') {
                if (const auto count = count_arguments(text, end)) {
                    counts.insert(*count);
                }
            }
        }
    }
    return calls;
}

bool takes_all(std::string_view schema, const std::set<std::size_t>& counts) {
    const auto parsed = parse_schema(schema);
    return parsed && (counts.empty() || (parsed->least_arguments <= *counts.begin() &&
                                         *counts.rbegin() <= parsed->most_arguments));
}

// A schema behind other text, of an operator that the package calls.
class SchemaBehindText {
public:
    explicit SchemaBehindText(Calls called) : called_(std::move(called)) {}

    std::optional<OperatorSchema> of(std::string_view text) {
        for (std::size_t open = text.find('('); open != std::string_view::npos;
             open = text.find('(', open + 1)) {
            const std::size_t start = name_before(text, open);
            if (auto schema = start < open ? parse_schema(text.substr(start)) : std::nullopt) {
                return schema;
            }
        }
        return std::nullopt;
    }

private:
    // Where the longest name that is called begins; none: `open`.
    std::size_t name_before(std::string_view text, std::size_t open) {
        std::size_t found = open;
        for (std::size_t start = open; start > 0 && is_word(text[start - 1]);) {
            if (++tries_ > most_tries) {
                return open;
            }
            --start;
            if (called_.contains(text.substr(start, open - start))) {
                found = start;
            }
        }
        return found;
    }

    static constexpr int most_tries = 100'000;  // a hostile library has as many as it likes

    Calls called_;
    int tries_ = 0;
};

}  // namespace

std::vector<MappedOperator> find_operators(const std::filesystem::path& library,
                                           std::string_view op_namespace,
                                           const PackageSources& sources) {
    const binary::FileSource source(library);
    const auto layout = binary::ElfLayout::read(source);
    return layout ? find_operators(*layout, op_namespace, sources) : std::vector<MappedOperator>();
}

std::vector<MappedOperator> find_operators(const binary::ElfLayout& library,
                                           std::string_view op_namespace,
                                           const PackageSources& sources) {
    std::map<std::string, std::string> found;
    SchemaBehindText behind(find_calls(sources));
    const auto visit = [&](std::string_view text) {
        auto schema = parse_schema(text);
        if (!schema) {
            schema = behind.of(text);
        }
        if (schema && (schema->op_namespace.empty() || schema->op_namespace == op_namespace)) {
            found.emplace(schema->name, schema->text);
        }
    };
    binary::for_each_constant_string(library, ") -> ", longest_schema, visit);
    std::vector<MappedOperator> operators;
    for (const auto& [name, text] : found) {
        operators.push_back({name, text});
    }
    return operators;
}

bool defines_operators(const binary::Library& library) {
    // torch::Library::_def(…), and the stable ABI's functions.
    static constexpr std::array<std::string_view, 3> functions{
        "_ZNR5torch7Library4_defE", "aoti_torch_library_def", "torch_library_def"};
    const auto& symbols = library.symbols.symbols;
    return std::any_of(symbols.begin(), symbols.end(), [](const binary::Symbol& symbol) {
        return !symbol.defined && std::any_of(functions.begin(), functions.end(), [&](auto one) {
            return symbol.name.starts_with(one);
        });
    });
}

void add_merged_operators(std::vector<MappedOperator>& operators, const PackageSources& sources) {
    Calls calls = find_calls(sources);
    for (const MappedOperator& op : operators) {
        calls.erase(op.name.substr(0, op.name.find('.')));
    }
    // Several schemas may end with that name: the first is taken that the package's calls fit.
    struct Hidden {
        std::string_view schema;
        bool is_called_so;
    };
    std::map<std::string_view, Hidden> found;
    for (const MappedOperator& op : operators) {
        const std::string_view schema = op.schema;
        const std::size_t open = std::min(schema.find('('), schema.size());
        for (std::size_t start = 1; start < open; ++start) {
            const auto called = calls.find(schema.substr(start, open - start));
            if (called == calls.end()) {
                continue;
            }
            Hidden& hidden = found[called->first];
            if (!hidden.is_called_so) {
                const bool fits = takes_all(schema.substr(start), called->second);
                if (fits || hidden.schema.empty()) {
                    hidden = {schema.substr(start), fits};
                }
            }
        }
    }
    std::vector<MappedOperator> hidden;
    for (const auto& [name, one] : found) {
        hidden.push_back({std::string(name), std::string(one.schema)});
    }
    operators.insert(operators.end(), hidden.begin(), hidden.end());
    std::sort(operators.begin(), operators.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
}

}  // namespace twinkle::kernel
