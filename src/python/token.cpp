#include "python/token.h"

#include <algorithm>
#include <array>
#include <utility>

namespace twinkle::python {

std::string_view token_name(Tok kind) {
    switch (kind) {
        case Tok::EndOfFile: return "end of file";
        case Tok::Newline: return "end of line";
        case Tok::Indent: return "indentation";
        case Tok::Dedent: return "unindentation";
        case Tok::Name: return "a name";
        case Tok::Number: return "a number";
        case Tok::String: return "a string";
        case Tok::FStringStart: return "an f-string";
        case Tok::FStringMiddle: return "text of an f-string";
        case Tok::FStringEnd: return "the end of an f-string";
        case Tok::Error: return "an error";
#define TWINKLE_X(name, text) \
    case Tok::name: return "'" text "'";
            TWINKLE_PYTHON_OPERATORS(TWINKLE_X)
#undef TWINKLE_X
#define TWINKLE_X(name, text) \
    case Tok::Kw##name: return "'" text "'";
            TWINKLE_PYTHON_KEYWORDS(TWINKLE_X)
#undef TWINKLE_X
    }
    return "a token";
}

Tok keyword(std::string_view word) {
    using Entry = std::pair<std::string_view, Tok>;
    static const auto table = [] {
        std::array entries{
#define TWINKLE_X(name, text) Entry{text, Tok::Kw##name},
            TWINKLE_PYTHON_KEYWORDS(TWINKLE_X)
#undef TWINKLE_X
        };
        std::sort(entries.begin(), entries.end());
        return entries;
    }();
    if (word.size() < 2 || word.size() > 8) {
        return Tok::Name;
    }
    const auto found = std::lower_bound(table.begin(), table.end(), Entry{word, Tok{}});
    return found != table.end() && found->first == word ? found->second : Tok::Name;
}

}  // namespace twinkle::python
