#include "base/table.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace twinkle::base {
namespace {

constexpr std::size_t gap = 2;

std::size_t total(const std::vector<std::size_t>& widths) {
    std::size_t sum = 0;
    for (const auto width : widths) {
        sum += width > 0 ? width + gap : 0;
    }
    return sum > gap ? sum - gap : sum;
}

std::vector<std::string> fitted(const std::string& text, Table::Fit fit, std::size_t width) {
    switch (fit) {
        case Table::Fit::tail: return {keep_tail(text, width)};
        case Table::Fit::wrap: return split(wrap(text, width), '\n');
        case Table::Fit::keep:
        case Table::Fit::head: break;
    }
    return {keep_head(text, width)};
}

}  // namespace

void Table::add(std::vector<Cell> row) {
    row.resize(columns_.size(), Cell(""));
    for (auto& cell : row) {
        cell.text = printable(cell.text);
    }
    rows_.push_back(std::move(row));
}

// 0 for a column that is empty in all rows.
std::vector<std::size_t> Table::natural_widths() const {
    std::vector<std::size_t> widths(columns_.size(), 0);
    for (const auto& row : rows_) {
        for (std::size_t i = 0; i < widths.size(); ++i) {
            widths[i] = std::max(widths[i], display_width(row[i].text));
        }
    }
    for (std::size_t i = 0; i < widths.size(); ++i) {
        if (widths[i] > 0) {
            widths[i] = std::max(widths[i], display_width(columns_[i].title));
        }
    }
    return widths;
}

std::size_t Table::width() const {
    return total(natural_widths());
}

std::size_t Table::least_width() const {
    auto widths = natural_widths();
    for (std::size_t i = 0; i < widths.size(); ++i) {
        if (columns_[i].fit != Fit::keep) {
            widths[i] = std::min(widths[i], least_of(i, true));
        }
    }
    return total(widths);
}

std::size_t Table::least_of(std::size_t column, bool whole_words) const {
    const auto least = columns_[column].least;
    return columns_[column].fit == Fit::wrap && whole_words ? std::max(longest_word(column), least)
                                                            : least;
}

// A wrapping column breaks no words as long as other columns can shrink.
std::vector<std::size_t> Table::widths_within(std::size_t width) const {
    auto widths = natural_widths();
    for (const bool whole_words : {true, false}) {
        while (total(widths) > width) {
            std::optional<std::size_t> widest;
            for (std::size_t i = 0; i < widths.size(); ++i) {
                if (columns_[i].fit != Fit::keep && widths[i] > least_of(i, whole_words) &&
                    (!widest || widths[i] > widths[*widest])) {
                    widest = i;
                }
            }
            if (!widest) {
                break;
            }
            --widths[*widest];
        }
    }
    return widths;
}

std::size_t Table::longest_word(std::size_t column) const {
    std::size_t longest = 0;
    for (const auto& row : rows_) {
        for (const auto& word : split(row[column].text, ' ')) {
            longest = std::max(longest, display_width(word));
        }
    }
    return longest;
}

std::string Table::render(std::size_t width, bool color) const {
    const auto widths = width == 0 ? natural_widths() : widths_within(width);
    std::string text;
    const auto add_row = [&](const std::vector<Cell>& row) {
        std::vector<std::vector<std::string>> lines;
        std::size_t height = 1;
        for (std::size_t i = 0; i < widths.size(); ++i) {
            lines.push_back(fitted(row[i].text, columns_[i].fit, widths[i]));
            height = std::max(height, widths[i] > 0 ? lines.back().size() : 0);
        }
        for (std::size_t line = 0; line < height; ++line) {
            std::size_t owed = 0;  // spaces, so that no line ends in one
            for (std::size_t i = 0; i < widths.size(); ++i) {
                if (widths[i] == 0) {
                    continue;
                }
                const auto shown = line < lines[i].size() ? lines[i][line] : std::string();
                const auto spare = widths[i] - std::min(widths[i], display_width(shown));
                const bool right = columns_[i].align == Align::right;
                if (!shown.empty()) {
                    text.append(owed + (right ? spare : 0), ' ');
                    text += styled(shown, row[i].style, color);
                    owed = 0;
                }
                owed += shown.empty() ? widths[i] + gap : (right ? 0 : spare) + gap;
            }
            text += "\n";
        }
    };
    std::vector<Cell> titles;
    for (const auto& column : columns_) {
        titles.emplace_back(column.title, Style::bold);
    }
    add_row(titles);
    for (const auto& row : rows_) {
        add_row(row);
    }
    return text;
}

}  // namespace twinkle::base
