#pragma once
// What `check` finds: every rule has an id, a sentence and a remedy, in one table.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::kernel {

enum class Severity { note, warning, error };
std::string_view severity_name(Severity severity);

struct Rule {
    std::string_view id;      // "abi/manylinux"
    std::string_view text;    // what must hold
    std::string_view remedy;  // what to do where it does not
};
std::span<const Rule> rules();
const Rule& rule(std::string_view id);  // an unknown id is a mistake in twinkle

struct Finding {
    std::string_view rule;
    Severity severity = Severity::error;
    std::string text;
    std::string file;  // relative to what is checked; empty: no file in particular
    int line = 0;      // 0: no line
    std::string remedy = std::string();  // where it differs from the rule's
};

using Findings = std::vector<Finding>;

}  // namespace twinkle::kernel
