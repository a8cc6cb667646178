#pragma once
// Building blocks of the tables of kernelize and bench. Reports come from the worker: a field may
// be missing or of another type.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/table.h"
#include "base/terminal.h"
#include "cli/json_fields.h"

namespace twinkle::cli {

std::optional<double> number_of(const base::Json& object, const char* key);
inline const base::Json& sites_of(const base::Json& report) {
    return list_of(report, "sites");
}

// "1.2e-7": two digits and the shortest exponent. Nothing: "".
std::string error_text(const std::optional<double>& value);
std::string time_text(const std::optional<double>& microseconds);  // "353 us", "1.81 ms"

base::Style status_style(const std::string& status);  // of a site
std::string short_name(const std::string& name);      // the last component of a dotted name
std::string shown_site(const base::Json& site);       // its name; the root is "(the model)"
std::size_t count_of(const base::Json& report, const std::string& status);  // sites

// Reasons shared by many sites, listed once below the table.
class Notes {
public:
    std::string number(const std::string& text);  // "[2]"
    std::string render(std::size_t columns) const;

private:
    std::vector<std::string> texts_;
};

// A table of the sites. With notes, reasons are numbers in them, and the prefix `implied`, common
// to all kernels, is cut.
using SiteTable =
    std::function<base::Table(const base::Json& report, Notes* notes, const std::string& implied)>;

// The table, with notes if it is too wide for the terminal otherwise, and below it "7 replaced, 0
// kept, 0 put back; mode inference; …".
std::string sites_text(const base::Json& report, const SiteTable& table_of, std::size_t columns,
                       bool color);

}  // namespace twinkle::cli
