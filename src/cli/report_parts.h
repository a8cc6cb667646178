#pragma once
// Building blocks of the tables of kernelize and bench. Reports come from the worker: a field may
// be missing or of another type.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/terminal.h"
#include "cli/console.h"
#include "cli/json_fields.h"

namespace twinkle::cli {

std::optional<double> number_of(const base::Json& object, const char* key);
inline const base::Json& sites_of(const base::Json& report) {
    return list_of(report, "sites");
}

// "1.2e-7": two digits and the shortest exponent. Nothing: "".
std::string error_text(const std::optional<double>& value);

// Says of a site "put back" for what the JSON calls reverted.
std::string status_text(const std::string& status);
base::Style status_style(const std::string& status);
std::string short_name(const std::string& name);  // the last component of a dotted name
std::string shown_site(const base::Json& site);   // its name; the root is "(the model)"
// "8 × LlamaMLP": so many sites of what `site` is of, the number as wide as `digits`.
std::string group_title(std::size_t count, const base::Json& site, std::size_t digits = 1);
std::size_t count_of(const base::Json& report, const std::string& status);  // sites

void say_warnings(const base::Json& report, Console& console);

// Reasons shared by many sites, listed once below the table.
class Notes {
public:
    std::string number(const std::string& text);  // "[2]"
    std::string render(std::size_t columns) const;

private:
    std::vector<std::string> texts_;
};

}  // namespace twinkle::cli
