#include "project/text_changes.h"

#include <algorithm>

namespace twinkle::project {

TextChanges::TextChanges(std::string_view text, std::size_t start)
    : text_(text),
      start_(start),
      newline_(text.find("\r\n") != std::string_view::npos ? "\r\n" : "\n") {}

void TextChanges::replace(const TomlSpan& span, std::string with) {
    changes_.push_back({span.begin, span.end, std::move(with)});
}
void TextChanges::insert(std::size_t at, std::string what) {
    replace({at, at}, std::move(what));
}
void TextChanges::erase(std::size_t begin, std::size_t end) {
    replace({begin, end}, "");
}

void TextChanges::insert_line(std::size_t at, const std::string& line, const std::string& indent) {
    const bool fresh = at <= start_ || text_[at - 1] == '\n';
    insert(at, fresh ? indent + line + newline_ : newline_ + indent + line);
}

void TextChanges::insert_line_behind(const TomlSpan& span, const std::string& line) {
    const std::size_t begin = line_begin(text_, span.begin);
    std::string indent = text_.substr(begin, span.begin - begin);
    if (indent.find_first_not_of(" \t") != std::string::npos) {
        indent.clear();  // a byte order mark
    }
    insert_line(next_line(text_, span.end), line, indent);
}

void TextChanges::append_section(const std::string& header, const std::string& line) {
    const bool empty = text_.size() == start_;
    const bool ends = empty || text_.back() == '\n';
    insert(text_.size(), (ends ? "" : newline_) + (empty ? "" : newline_) + "[" + header + "]" +
                             newline_ + line + newline_);
}

void TextChanges::erase_item(const std::vector<TomlSpan>& items, std::size_t index) {
    const TomlSpan& item = items[index];
    if (item.comma != no_place) {
        std::size_t end = item.comma + 1;
        while (end < text_.size() && text_[end] == ' ') {
            ++end;
        }
        erase(item.begin, end);
        return;
    }
    std::size_t begin = item.begin;
    if (index > 0) {
        const std::size_t comma = items[index - 1].comma;
        erase(comma, comma + 1);
        while (begin > comma + 1 && text_[begin - 1] == ' ') {
            --begin;
        }
    }
    erase(begin, item.end);
}

void TextChanges::erase_lines(const TomlSpan& span) {
    erase(std::max(line_begin(text_, span.begin), start_), next_line(text_, span.end));
}

std::optional<std::string> TextChanges::applied() const {
    auto changes = changes_;
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.begin > b.begin; });
    std::string result = text_;
    std::size_t limit = text_.size();
    for (const Change& change : changes) {
        if (change.end > limit) {
            return std::nullopt;
        }
        result.replace(change.begin, change.end - change.begin, change.with);
        limit = change.begin;
    }
    return result;
}

}  // namespace twinkle::project
