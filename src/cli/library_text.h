#pragma once
// A shared library as inspect shows it.

#include <string>

#include "binary/library.h"
#include "cli/fact_printer.h"

namespace twinkle::cli {

// Lists symbols only on request: there may be a hundred thousand.
void print_library(const std::string& path, const binary::Library& library, bool symbols,
                   FactPrinter& printer);

}  // namespace twinkle::cli
