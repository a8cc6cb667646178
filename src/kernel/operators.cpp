#include "kernel/operators.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "binary/constant_strings.h"
#include "kernel/schema.h"

namespace twinkle::kernel {
namespace {

// The names behind "ops." in the sources.
std::set<std::string> called_names(const PackageSources& sources) {
    constexpr std::string_view marker = "ops.";
    std::set<std::string> names;
    for (const auto& [path, text] : sources) {
        for (std::size_t at = text.find(marker); at != std::string::npos;
             at = text.find(marker, at)) {
            at += marker.size();
            std::size_t end = at;
            while (end < text.size() && is_word(text[end])) {
                ++end;
            }
            names.insert(text.substr(at, end - at));
        }
    }
    return names;
}

// A schema behind other text, of an operator that the package calls.
class SchemaBehindText {
public:
    explicit SchemaBehindText(std::set<std::string> called) : called_(std::move(called)) {}

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
            if (called_.contains(std::string(text.substr(start, open - start)))) {
                found = start;
            }
        }
        return found;
    }

    static constexpr int most_tries = 100'000;  // a hostile library has as many as it likes

    std::set<std::string> called_;
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
    SchemaBehindText behind(called_names(sources));
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
    std::vector<MappedOperator> hidden;
    const auto is_known = [&](const std::string& name) {
        return std::any_of(operators.begin(), operators.end(), [&](const MappedOperator& op) {
            return op.name.substr(0, op.name.find('.')) == name;
        });
    };
    for (const std::string& name : called_names(sources)) {
        if (name.empty() || is_known(name)) {
            continue;
        }
        for (const MappedOperator& op : operators) {
            const std::size_t start = op.schema.find(name + "(");
            if (start != std::string::npos && start > 0 && start < op.schema.find('(')) {
                hidden.push_back({name, op.schema.substr(start)});
                break;
            }
        }
    }
    operators.insert(operators.end(), hidden.begin(), hidden.end());
    std::sort(operators.begin(), operators.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
}

}  // namespace twinkle::kernel
