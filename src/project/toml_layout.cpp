#include "project/toml_layout.h"

#include <algorithm>

#include "base/toml.h"

namespace twinkle::project {
namespace {

class Scanner {
public:
    explicit Scanner(std::string_view text) : text_(text) {
        if (text_.starts_with("\xef\xbb\xbf")) {
            at_ = 3;
        }
    }

    std::vector<TomlSection> scan() {
        std::vector<TomlSection> sections(1);
        sections[0].header = {at_, at_};
        for (skip_blank(); at_ < text_.size(); skip_blank()) {
            if (text_[at_] == '[') {
                sections.push_back(header());
            } else {
                sections.back().entries.push_back(entry());
            }
        }
        return sections;
    }

private:
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    void skip_spaces() {
        while (peek() == ' ' || peek() == '\t') {
            ++at_;
        }
    }

    // Spaces, line ends and comments.
    void skip_blank() {
        while (at_ < text_.size()) {
            if (text_[at_] == '#') {
                at_ = std::min(text_.find('\n', at_), text_.size());
            } else if (std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
                ++at_;
            } else {
                return;
            }
        }
    }

    TomlSection header() {
        TomlSection section;
        section.header.begin = at_;
        section.is_array = text_.substr(at_).starts_with("[[");
        at_ += section.is_array ? 2 : 1;
        std::vector<TomlSpan> places;
        key(section.path, places);
        at_ = next_line(text_, at_);
        section.header.end = at_;
        return section;
    }

    TomlEntry entry() {
        TomlEntry entry;
        entry.place.begin = at_;
        key(entry.key, entry.key_parts);
        ++at_;  // =
        skip_spaces();
        value(&entry);
        entry.place.end = entry.value.end;
        return entry;
    }

    // A dotted key; stands behind the spaces after it.
    void key(TomlPath& path, std::vector<TomlSpan>& places) {
        while (at_ < text_.size()) {
            skip_spaces();
            const std::size_t begin = at_;
            if (peek() == '"' || peek() == '\'') {
                skip_string();
            } else {
                at_ = std::min(text_.find_first_of(".=] \t", at_), text_.size());
            }
            places.push_back({begin, at_});
            path.push_back(unquoted(text_.substr(begin, at_ - begin)));
            skip_spaces();
            if (peek() != '.') {
                return;
            }
            ++at_;
        }
    }

    static std::string unquoted(std::string_view key) {
        if (key.empty() || (key[0] != '"' && key[0] != '\'')) {
            return std::string(key);
        }
        const base::Node node = base::parse_toml_document("k = " + std::string(key), "");
        return node.members.front().value.text;
    }

    void skip_string() {
        const char quote = text_[at_];
        const std::string triple(3, quote);
        const bool multi_line = text_.substr(at_).starts_with(triple);
        at_ += multi_line ? 3 : 1;
        while (at_ < text_.size()) {
            if (quote == '"' && text_[at_] == '\\') {
                at_ += 2;
            } else if (!multi_line && text_[at_] == quote) {
                ++at_;
                return;
            } else if (multi_line && text_.substr(at_).starts_with(triple)) {
                at_ += 3;
                // Up to two more belong to the text.
                for (int i = 0; i < 2 && peek() == quote; ++i) {
                    ++at_;
                }
                return;
            } else {
                ++at_;
            }
        }
    }

    // With an entry, notes what the value is made of.
    void value(TomlEntry* entry) {
        TomlSpan place{at_, at_};
        switch (peek()) {
            case '"':
            case '\'': skip_string(); break;
            case '[': array(entry); break;
            case '{': inline_table(entry); break;
            default:
                at_ = std::min(text_.find_first_of(",]}#\r\n", at_), text_.size());
                while (at_ > place.begin && (text_[at_ - 1] == ' ' || text_[at_ - 1] == '\t')) {
                    --at_;
                }
        }
        place.end = at_;
        if (entry != nullptr) {
            entry->value = place;
        }
    }

    void array(TomlEntry* entry) {
        ++at_;
        std::vector<TomlSpan> items;
        for (skip_blank(); at_ < text_.size() && peek() != ']'; skip_blank()) {
            TomlSpan item{at_, at_};
            value(nullptr);
            item.end = at_;
            skip_blank();
            if (peek() == ',') {
                item.comma = at_++;
            }
            items.push_back(item);
        }
        ++at_;
        if (entry != nullptr) {
            entry->is_array = true;
            entry->items = std::move(items);
        }
    }

    void inline_table(TomlEntry* entry) {
        ++at_;
        std::vector<TomlEntry> members;
        for (skip_blank(); at_ < text_.size() && peek() != '}'; skip_blank()) {
            TomlEntry member = this->entry();
            skip_blank();
            if (peek() == ',') {
                member.place.comma = at_++;
            }
            members.push_back(std::move(member));
        }
        ++at_;
        if (entry != nullptr) {
            entry->is_inline_table = true;
            entry->members = std::move(members);
        }
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

TomlPath joined(TomlPath path, const TomlPath& more) {
    path.insert(path.end(), more.begin(), more.end());
    return path;
}

std::size_t next_line(std::string_view text, std::size_t at) {
    const auto end = text.find('\n', at);
    return end == std::string_view::npos ? text.size() : end + 1;
}

std::size_t line_begin(std::string_view text, std::size_t at) {
    const auto end = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
    return end == std::string_view::npos ? 0 : end + 1;
}

std::vector<TomlSection> toml_layout(std::string_view text) {
    return Scanner(text).scan();
}

}  // namespace twinkle::project
