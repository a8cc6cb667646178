#include "base/toml_depth.h"

#include <algorithm>
#include <vector>

namespace twinkle::base {
namespace {

// Reads keys, brackets and line ends as the parser does, and skips strings and
// comments.
class DepthScanner {
public:
    DepthScanner(std::string_view text, std::size_t limit) : text_(text), limit_(limit) {}

    std::optional<TextPosition> scan() {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '"' || c == '\'') {
                begun_ = true;
                skip_string(c);
            } else if (c == '#') {
                at_ = std::min(text_.find('\n', at_), text_.size());
            } else {
                take(c);
                ++at_;
            }
            if (depth() > limit_) {
                return position();
            }
        }
        return std::nullopt;
    }

private:
    // The innermost open value or else the table of the last header; the parts of the key whose
    // value is read; and those of a key that is being read (or of a number, which does no harm).
    std::size_t depth() const { return (open_.empty() ? header_ : open_.back()) + key_ + dots_; }

    void take(char c) {
        switch (c) {
            case '.': ++dots_; break;
            case '=':
                key_ += dots_ + 1;
                dots_ = 0;
                break;
            case '[':
            case '{': open(); break;
            case ']':
            case '}': close(); break;
            case ',': key_ = dots_ = 0; break;
            case '\n': end_line(); return;
            // Blanks, and the byte order mark that some editors write.
            default: begun_ = begun_ || (c > ' ' && static_cast<unsigned char>(c) < 0x80); return;
        }
        begun_ = true;
    }

    void open() {
        if (open_.empty() && !begun_) {
            in_header_ = true;
            header_ = 0;
        } else if (!in_header_) {
            open_.push_back(depth() + 1);
            key_ = dots_ = 0;
        }
    }

    void close() {
        if (in_header_) {
            header_ = dots_ + 1;
            in_header_ = false;
        } else if (!open_.empty()) {
            open_.pop_back();
        }
        key_ = dots_ = 0;
    }

    void end_line() {
        if (open_.empty()) {
            begun_ = in_header_ = false;
            key_ = dots_ = 0;
        }
    }

    void skip_string(char quote) {
        const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
        const bool long_one = text_.substr(at_, 3) == three;
        at_ += long_one ? 3 : 1;
        for (; at_ < text_.size(); ++at_) {
            if (text_[at_] == '\\' && quote == '"') {
                ++at_;
            } else if (!long_one && text_[at_] == '\n') {
                return;
            } else if (text_[at_] == quote && (!long_one || text_.substr(at_, 3) == three)) {
                break;
            }
        }
        at_ = std::min(at_ + (long_one ? 3 : 1), text_.size());
        // A long string may end in one or two quotation marks of its own.
        for (int i = 0; long_one && i < 2 && at_ < text_.size() && text_[at_] == quote; ++i) {
            ++at_;
        }
    }

    TextPosition position() const {
        const std::string_view before = text_.substr(0, at_);
        const auto line = before.rfind('\n');
        TextPosition position;
        position.line += static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
        position.column = before.size() - (line == std::string_view::npos ? 0 : line + 1);
        return position;
    }

    std::string_view text_;
    const std::size_t limit_;
    std::size_t at_ = 0;
    std::size_t header_ = 0;         // parts of the last header
    std::size_t key_ = 0;            // parts of the key whose value is read
    std::size_t dots_ = 0;           // in the key being read
    std::vector<std::size_t> open_;  // the depth of what is in each open array or inline table
    bool begun_ = false;             // this line is not blank so far
    bool in_header_ = false;
};

}  // namespace

std::optional<TextPosition> too_deep_in_toml(std::string_view text, std::size_t limit) {
    return DepthScanner(text, limit).scan();
}

}  // namespace twinkle::base
