#include "cli/library_text.h"

#include "binary/demangle.h"
#include "binary/limited_api.h"

namespace twinkle::cli {
namespace {

using Fit = base::Table::Fit;
using Align = base::Table::Align;

void print_library_facts(const std::string& path, const binary::Library& library,
                         FactPrinter& printer) {
    printer.heading(base::printable(path));
    printer.line("for", library.machine + (library.readable ? "" : ", which is not read further"));
    printer.line("needs", base::join(library.needed, ", "));
    std::vector<std::string> versions;
    for (const auto& [kind, number] : library.newest_versions) {
        versions.push_back(kind + " " + number);
    }
    printer.line("newest versions needed", base::join(versions, ", "));
    printer.line("looks for libraries in",
                 base::join(library.rpath, ":") + base::join(library.runpath, ":"));
    if (!library.python_symbols.empty()) {
        bool limited = true;
        for (const auto& symbol : library.python_symbols) {
            limited = limited && binary::in_limited_api(symbol);
        }
        printer.line("symbols of Python", base::join(library.python_symbols, ", ") +
                                              (limited ? " (limited API 3.9)" : ""));
    }
    printer.line("binds at once", library.bind_now ? "yes" : "");
    printer.line("relocations in code", library.text_relocations ? "yes" : "");
    printer.line("runs code when loaded", library.has_initializers ? "yes" : "");
    printer.line("GPU architectures",
                 base::join(binary::runnable_archs(library.device_code.entries), ", ") +
                     (library.device_code.complete ? "" : ", and code that cannot be read"));
}

void print_symbols(const binary::Library& library, FactPrinter& printer) {
    base::Table table({{"symbol", Align::left, Fit::wrap}, {"version"}, {"is"}});
    for (const binary::Symbol& symbol : library.symbols.symbols) {
        table.add({{binary::demangle(symbol.name)},
                   {std::string(symbol.version)},
                   {symbol.defined ? "exported"
                    : symbol.weak  ? "wanted"
                                   : "needed"}});
    }
    printer.table("Symbols", table);
}

}  // namespace

void print_library(const std::string& path, const binary::Library& library, bool symbols,
                   FactPrinter& printer) {
    print_library_facts(path, library, printer);
    if (symbols) {
        print_symbols(library, printer);
    }
}

}  // namespace twinkle::cli
