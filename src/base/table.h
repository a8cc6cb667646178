#pragma once
// A text table that fits a width: shrinkable columns shrink, the widest first, by cutting the end
// or the beginning of a text, or by breaking it into lines.

#include <cstddef>
#include <string>
#include <vector>

#include "base/terminal.h"

namespace twinkle::base {

class Table {
public:
    enum class Align { left, right };
    enum class Fit { keep, head, tail, wrap };  // how a cell that is too long gives way

    struct Column {
        std::string title;
        Align align = Align::left;
        Fit fit = Fit::keep;
        std::size_t least = 8;  // how far it gives way
    };
    struct Cell {
        Cell(std::string text, Style style = Style::plain) : text(std::move(text)), style(style) {}
        Cell(const char* text) : text(text) {}
        std::string text;  // made printable by add()
        Style style = Style::plain;
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

    void add(std::vector<Cell> row);  // missing cells are empty
    bool empty() const { return rows_.empty(); }
    std::size_t width() const;        // columns taken when nothing gives way
    std::size_t least_width() const;  // … and when everything does

    // `width` 0: as wide as needed. Empty columns are left out.
    std::string render(std::size_t width, bool color) const;

private:
    std::vector<std::size_t> natural_widths() const;
    std::vector<std::size_t> widths_within(std::size_t width) const;
    std::size_t longest_word(std::size_t column) const;
    std::size_t least_of(std::size_t column, bool whole_words) const;

    std::vector<Column> columns_;
    std::vector<std::vector<Cell>> rows_;
};

}  // namespace twinkle::base
