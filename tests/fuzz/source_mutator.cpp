#include "fuzz/source_mutator.h"

#include <array>
#include <cctype>

namespace twinkle::fuzz {

namespace {

// Replacements for a word.
const std::array<const char*, 64> words = {"x",
                                           "self",
                                           "None",
                                           "True",
                                           "0",
                                           "1",
                                           "-1",
                                           "2.5",
                                           "\"a\"",
                                           "f\"{x}\"",
                                           "torch",
                                           "nn",
                                           "F",
                                           "x.shape",
                                           "len",
                                           "int",
                                           "float",
                                           "str",
                                           "list",
                                           "tuple",
                                           "dict",
                                           "scale",
                                           "endless",
                                           "Packed",
                                           "Layer",
                                           "helpers",
                                           "EPS",
                                           "SIZES",
                                           "A",
                                           "C",
                                           "dep",
                                           "kwargs",
                                           "args",
                                           "self.gate",
                                           "self.experts",
                                           "self.eps",
                                           "forward",
                                           "(x, x)",
                                           "[x]",
                                           "[]",
                                           "{}",
                                           "()",
                                           "lambda: x",
                                           "*x",
                                           "**x",
                                           "x[0]",
                                           "x[:, None]",
                                           "not x",
                                           "x and x",
                                           "x or 1",
                                           "x if x else 1",
                                           "type",
                                           "super",
                                           "isinstance",
                                           "hasattr",
                                           "getattr",
                                           "range(3)",
                                           "zip(x, x)",
                                           "10 ** 10",
                                           "x ** x",
                                           "torch.ops.aten.add",
                                           "1e400",
                                           "_TwinkleName_power",
                                           "_TwinkleType0"};
const std::array<const char*, 24> lines = {"        return x",
                                           "        x = x + 1",
                                           "        if x.dim() == 2:",
                                           "            x = x * 2",
                                           "        else:",
                                           "        for i in range(3):",
                                           "        while True:",
                                           "        break",
                                           "        yield x",
                                           "        x = None",
                                           "        x: int = x",
                                           "        try:",
                                           "        except:",
                                           "        global EPS",
                                           "        import torch",
                                           "        from . import helpers as x",
                                           "        del x",
                                           "        raise X(x)",
                                           "        with torch.no_grad():",
                                           "        pass",
                                           "    @property",
                                           "        return x, x",
                                           "        assert x",
                                           "        x, y = y, x"};

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

void replace_word(std::string& text, Random& random) {
    std::size_t begin = below(random, text.size());
    while (begin < text.size() && !is_word(text[begin])) ++begin;
    while (begin > 0 && is_word(text[begin - 1])) --begin;
    std::size_t end = begin;
    while (end < text.size() && is_word(text[end])) ++end;
    text.replace(begin, end - begin, words[below(random, words.size())]);
}

std::pair<std::size_t, std::size_t> some_line(const std::string& text, Random& random) {
    const std::size_t at = below(random, text.size());
    const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    const std::size_t end = text.find('\n', at);
    return {begin, end == std::string::npos ? text.size() : end + 1};
}

}  // namespace

std::size_t below(Random& random, std::size_t limit) {
    return limit == 0 ? 0 : random() % limit;
}

void change(std::string& text, Random& random) {
    const auto [begin, end] = some_line(text, random);
    const std::string line = text.substr(begin, end - begin);
    switch (below(random, 10)) {
        case 0: text[below(random, text.size())] = static_cast<char>(random()); return;
        case 1: text.erase(begin, end - begin); return;
        case 2: text.insert(begin, line); return;
        case 3: text.insert(begin, std::string(lines[below(random, lines.size())]) + "\n"); return;
        case 4: {  // a line elsewhere
            text.erase(begin, end - begin);
            text.insert(some_line(text, random).first, line);
            return;
        }
        case 5: {  // much of the same
            const std::size_t times = 1 + below(random, 400);
            std::string many;
            for (std::size_t i = 0; i < times; ++i) many += line;
            text.insert(begin, many);
            return;
        }
        case 6: {  // nested
            const std::size_t at = below(random, text.size());
            const std::size_t deep = 1 + below(random, 1200);
            static const std::string open = "([{-~";
            const char c = open[below(random, open.size())];
            text.insert(at, std::string(deep, c));
            return;
        }
        default: replace_word(text, random);
    }
}

}  // namespace twinkle::fuzz
