// Lines: indentation, ends of lines, lines joined by a backslash, comments.
#include "python/lexer_impl.h"

#include "python/source.h"

namespace twinkle::python {
namespace {

constexpr std::size_t kTab = 8;

}  // namespace

void Lexer::begin_line() {
    at_line_begin_ = false;
    std::size_t column = 0;
    std::size_t tabless = 0;  // a second measure with tabs as one column finds ambiguous mixtures
    std::size_t continued = 0;
    for (;;) {
        const char c = at();
        if (c == ' ') {
            ++column;
            ++tabless;
        } else if (c == '\t') {
            column = (column / kTab + 1) * kTab;
            ++tabless;
        } else if (c == '\f') {
            column = tabless = 0;
        } else if (c == '\\' && line_end_size(source_, pos_.offset + 1) > 0) {
            continued = continued ? continued : column;
            ++pos_.offset;
            skip_line_end();
            continue;
        } else {
            break;
        }
        ++pos_.offset;
    }
    const bool blank = at_end() || at() == '#' || at() == '\n' || at() == '\r';
    if (blank) {
        skip_spaces_and_comment();
        at_line_begin_ = skip_line_end();
        return;
    }
    indent(continued ? continued : column, continued ? continued : tabless);
}

void Lexer::indent(std::size_t column, std::size_t tabless) {
    constexpr auto kTabError = "inconsistent use of tabs and spaces in indentation";
    if (column > indents_.back().column) {
        if (indents_.size() >= kMaxIndentation) {
            stop(pos_, "too many levels of indentation");
        }
        if (tabless <= indents_.back().tabless_column) {
            stop(pos_, kTabError);
        }
        indents_.push_back({column, tabless});
        emit(Tok::Indent, pos_);
        return;
    }
    while (column < indents_.back().column) {
        indents_.pop_back();
        emit(Tok::Dedent, pos_);
    }
    if (column != indents_.back().column) {
        stop(pos_, "unindent does not match any outer indentation level");
    }
    if (tabless != indents_.back().tabless_column) {
        stop(pos_, kTabError);
    }
}

void Lexer::end_line() {
    const Position begin = pos_;
    const bool has_tokens = !out_.tokens.empty() && out_.tokens.back().kind != Tok::Newline;
    if (brackets_.empty() && has_tokens) {
        emit(Tok::Newline, begin);
    }
    skip_line_end();
    at_line_begin_ = brackets_.empty();
}

void Lexer::finish() {
    if (!fstrings_.empty()) {
        check_fstring_end(fstrings_.back());
    }
    if (!brackets_.empty()) {
        stop(brackets_.back().span,
             std::string("'") + brackets_.back().open + "' was never closed");
    }
    if (!out_.tokens.empty() && out_.tokens.back().kind != Tok::Newline) {
        emit(Tok::Newline, pos_);
    }
    for (; indents_.size() > 1; indents_.pop_back()) {
        emit(Tok::Dedent, pos_);
    }
    emit(Tok::EndOfFile, pos_);
}

void Lexer::continuation() {
    const Position begin = pos_;
    ++pos_.offset;
    if (!skip_line_end()) {
        stop(begin, at_end() ? "unexpected end of file after line continuation character"
                             : "unexpected character after line continuation character");
    }
    if (at_end()) {
        stop(begin, "unexpected end of file after line continuation character");
    }
}

void Lexer::skip_spaces_and_comment() {
    while (at() == ' ' || at() == '\t' || at() == '\f') {
        ++pos_.offset;
    }
    if (at() == '#') {
        pos_.offset = std::min(source_.find_first_of("\r\n", pos_.offset), source_.size());
    }
}

}  // namespace twinkle::python
