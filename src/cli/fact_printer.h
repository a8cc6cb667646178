#pragma once
// Prints headings with lines and tables below them.

#include <string>

#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/console.h"

namespace twinkle::cli {

class FactPrinter {
public:
    explicit FactPrinter(Console& console) : console_(console) {}

    void heading(const std::string& text) {
        console_.result(std::string(first_ ? "" : "\n") +
                        base::styled(text, base::Style::bold, console_.result_color()) + "\n");
        first_ = false;
    }
    void line(const std::string& name, const std::string& text) {
        if (!text.empty()) {
            console_.result("  " + name + ": " + base::printable(text) + "\n");
        }
    }
    void table(const std::string& title, const base::Table& table) {
        if (!table.empty()) {
            heading(title);
            console_.result(table);
        }
    }

private:
    Console& console_;
    bool first_ = true;
};

}  // namespace twinkle::cli
