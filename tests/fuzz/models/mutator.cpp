#include "models/mutator.h"

#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace twinkle::fuzz {

namespace {

using Random = std::mt19937;
using Records = std::vector<std::pair<std::string, std::string>>;

std::size_t below(Random& random, std::size_t limit) {
    return limit == 0 ? 0 : random() % limit;
}

std::string changed_bytes(std::string bytes, Random& random) {
    for (auto count = 1 + below(random, 6); count > 0 && !bytes.empty(); --count) {
        const auto at = below(random, bytes.size());
        const auto length = 1 + below(random, 8);
        switch (below(random, 6)) {
            case 0: bytes[at] = static_cast<char>(random()); break;
            case 1: bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(random, 8)); break;
            case 2: bytes.erase(at, length); break;
            case 3: bytes.insert(at, bytes.substr(below(random, bytes.size()), length)); break;
            case 4: bytes.replace(at, 4, "\xff\xff\xff\x7f", 4); break;
            default:
                bytes.insert(at, std::string(1, "(}]){\x85tRbQq0N.\x8a\x8c"[below(random, 16)]));
        }
    }
    return bytes;
}

// Names, numbers, and the characters between them.
std::vector<std::string> tokens_of(const std::string& text) {
    std::vector<std::string> tokens;
    for (std::size_t at = 0; at < text.size();) {
        auto end = at;
        const auto word = [&](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
        };
        while (end < text.size() && word(text[end])) {
            ++end;
        }
        end = std::max(end, at + 1);
        tokens.push_back(text.substr(at, end - at));
        at = end;
    }
    return tokens;
}

std::string join(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) {
        text += part;
    }
    return text;
}

const char* const words[] = {
    "0",     "1",      "-1",          "1e-3", "True",  "None",    "Tensor", "int",
    "float", "List",   "Dict",        "self", "x",     "forward", "weight", "variance_epsilon",
    "add",   "mul",    "sub",         "pow",  "rsqrt", "mean",    "if",     "while",
    "for",   "return", "annotate",    "ops",  "torch", "(",       ")",      "[",
    "]",     ",",      ":",           "\n",   "  ",    ".",       "\"",     "99999999999999999999",
    "raise", "def",    "CONSTANTS.c0"};

std::string changed_tokens(const std::string& text, Random& random) {
    auto tokens = tokens_of(text);
    for (auto count = 1 + below(random, 3); count > 0 && !tokens.empty(); --count) {
        const auto at = below(random, tokens.size());
        switch (below(random, 5)) {
            case 0: tokens[at] = words[below(random, std::size(words))]; break;
            case 1: tokens[at] = tokens[below(random, tokens.size())]; break;
            case 2: tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at)); break;
            case 3: tokens[at] += " " + std::string(words[below(random, std::size(words))]); break;
            default: std::swap(tokens[at], tokens[below(random, tokens.size())]);
        }
    }
    return join(tokens);
}

// Another number, or another operator: code that compiles and computes something else.
std::string changed_meaning(const std::string& text, Random& random) {
    static const std::vector<std::string> operators = {"add",  "mul",  "sub", "pow", "rsqrt",
                                                       "mean", "silu", "neg", "abs", "sqrt"};
    auto tokens = tokens_of(text);
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (std::isdigit(static_cast<unsigned char>(tokens[i][0])) != 0 ||
            std::find(operators.begin(), operators.end(), tokens[i]) != operators.end()) {
            places.push_back(i);
        }
    }
    if (places.empty()) {
        return changed_tokens(text, random);
    }
    std::string& token = tokens[places[below(random, places.size())]];
    token = std::isdigit(static_cast<unsigned char>(token[0])) != 0
                ? std::to_string(below(random, 8))
                : operators[below(random, operators.size())];
    return join(tokens);
}

std::string changed_lines(const std::string& text, Random& random) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size() - 1) + 1;
        lines.push_back(text.substr(at, end - at));
        at = end;
    }
    if (lines.empty()) {
        return text;
    }
    const auto at = lines.begin() + static_cast<std::ptrdiff_t>(below(random, lines.size()));
    switch (below(random, 4)) {
        case 0: lines.erase(at); break;
        case 1: lines.insert(at, *at); break;
        case 2: std::swap(*at, lines[below(random, lines.size())]); break;
        default: *at = "  " + *at;
    }
    return join(lines);
}

std::string repeated(const std::string& text, std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) {
        all += text;
    }
    return all;
}

// Nesting that kills a recursive parser.
std::string nested(const std::string& text, Random& random) {
    const std::size_t depth = std::size_t(1) << below(random, 18);
    auto tokens = tokens_of(text);
    std::string& token = tokens[below(random, tokens.size())];
    switch (below(random, 7)) {
        case 0: token = repeated("(", depth) + token + repeated(")", depth); break;
        case 1: token = repeated("-", depth) + token; break;
        case 2: token = repeated("not ", depth) + token; break;
        case 3: token = repeated("List[", depth) + token + repeated("]", depth); break;
        case 4: token += repeated(".a", depth); break;
        case 5: token += repeated(" + 1", depth); break;
        default:
            for (std::size_t i = 0; i < std::min<std::size_t>(depth, 3000); ++i) {
                token += "\n" + std::string(i + 4, ' ') + "if True:";
            }
    }
    return join(tokens);
}

std::string archive_of(const Records& records) {
    std::string bytes;
    {
        caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, std::size_t size) {
            bytes.append(static_cast<const char*>(data), size);
            return size;
        });
        for (const auto& [name, content] : records) {
            writer.writeRecord(name, content.data(), content.size());
        }
        writer.writeEndOfFile();
    }
    return bytes;
}

std::vector<std::size_t> records_named(const Records& records, std::string_view end) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < records.size(); ++i) {
        if (records[i].first.ends_with(end) && !records[i].second.empty()) {
            found.push_back(i);
        }
    }
    return found;
}

void change_structure(Records& records, Random& random) {
    const auto at = below(random, records.size());
    switch (below(random, 4)) {
        case 0: records.erase(records.begin() + static_cast<std::ptrdiff_t>(at)); break;
        case 1: records[at].second = records[below(random, records.size())].second; break;
        case 2: records[at].second.resize(below(random, records[at].second.size() + 1)); break;
        default: records[at].first += "x"; break;
    }
}

}  // namespace

SeedModel read_seed(const std::string& file) {
    SeedModel seed;
    seed.name = std::filesystem::path(file).stem().string();
    std::ifstream in(file, std::ios::binary);
    seed.bytes.assign(std::istreambuf_iterator<char>(in), {});
    caffe2::serialize::PyTorchStreamReader reader(file);
    for (const std::string& name : reader.getAllRecords()) {
        if (name != "version" && !name.starts_with(".data")) {
            const auto [data, size] = reader.getRecord(name);
            seed.records.emplace_back(name,
                                      std::string(static_cast<const char*>(data.get()), size));
        }
    }
    return seed;
}

std::string mutate_model(const SeedModel& seed, Random& random, std::string& how) {
    const auto kind = below(random, 16);
    if (kind == 0) {
        how = "bytes";
        return changed_bytes(seed.bytes, random);
    }
    if (kind == 1) {
        how = "cut";
        return seed.bytes.substr(0, below(random, seed.bytes.size()));
    }
    Records records = seed.records;
    const auto change = [&](std::string_view end, auto&& function) {
        const auto candidates = records_named(records, end);
        auto& content = records[candidates[below(random, candidates.size())]].second;
        content = function(content, random);
    };
    switch (kind) {
        case 2:
            how = "structure";
            change_structure(records, random);
            break;
        case 3:
            how = "constants";
            change("constants.pkl", changed_bytes);
            break;
        case 4:
            how = "debug";
            change(".debug_pkl", changed_bytes);
            break;
        case 5:
        case 6:
            how = "pickle";
            change("data.pkl", changed_bytes);
            break;
        case 7:
            how = "code bytes";
            change(".py", changed_bytes);
            break;
        case 8:
        case 9:
            how = "tokens";
            change(".py", changed_tokens);
            break;
        case 10:
            how = "lines";
            change(".py", changed_lines);
            break;
        case 11:
            how = "nesting";
            change(".py", nested);
            break;
        default:
            how = "meaning";
            change(".py", changed_meaning);
            break;
    }
    return archive_of(records);
}

}  // namespace twinkle::fuzz
