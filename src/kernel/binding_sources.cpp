#include "kernel/binding_sources.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/file.h"
#include "kernel/schema.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::kernel {
namespace {

constexpr std::uint64_t largest_binding = 4u << 20;
constexpr std::size_t most_bindings = 4096;  // files; few of them are bindings

// The string literals of a C++ source, those that follow each other as one.
class Literals {
public:
    explicit Literals(std::string_view source) : source_(source) {}

    template <class Visit>
    void visit(const Visit& one) {
        std::optional<std::string> text;
        while (at_ < source_.size()) {
            if (skip_space_and_comments()) {
                continue;
            }
            if (take("R\"")) {
                append(text, raw());
            } else if (source_[at_] == '"') {
                ++at_;
                append(text, quoted('"'));
            } else {
                if (text) {
                    one(*text);
                    text.reset();
                }
                if (source_[at_++] == '\'' && (at_ < 2 || !is_digit(source_[at_ - 2]))) {
                    quoted('\'');
                }
            }
        }
        if (text) {
            one(*text);
        }
    }

private:
    static void append(std::optional<std::string>& text, const std::string& more) {
        if (!text) {
            text.emplace();
        }
        *text += more;
    }

    static bool is_digit(char c) { return c >= '0' && c <= '9'; }

    bool take(std::string_view token) {
        const bool there = source_.substr(at_).starts_with(token);
        at_ += there ? token.size() : 0;
        return there;
    }

    void skip_past(std::string_view token) {
        const auto end = source_.find(token, at_);
        at_ = end == std::string_view::npos ? source_.size() : end + token.size();
    }

    bool skip_space_and_comments() {
        if (take("//")) {
            skip_past("\n");
            return true;
        }
        if (take("/*")) {
            skip_past("*/");
            return true;
        }
        const char c = source_[at_];
        const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        at_ += space ? 1 : 0;
        return space;
    }

    std::string quoted(char quote) {
        std::string text;
        while (at_ < source_.size() && source_[at_] != quote && source_[at_] != '\n') {
            if (source_[at_] == '\\' && at_ + 1 < source_.size()) {
                const char next = source_[++at_];
                text += next == 'n' ? '\n' : next == 't' ? '\t' : next;
            } else {
                text += source_[at_];
            }
            ++at_;
        }
        at_ += at_ < source_.size() ? 1 : 0;
        return text;
    }

    // delimiter(…)delimiter", behind R"; a delimiter has at most 16 characters.
    std::string raw() {
        const auto delimiter = source_.substr(at_, 17);
        const auto open = delimiter.find('(');
        if (open == std::string_view::npos) {
            return "";
        }
        const std::string end = ")" + std::string(delimiter.substr(0, open)) + "\"";
        at_ += open + 1;
        const std::size_t begin = at_;
        skip_past(end);
        const std::size_t size = at_ - begin;
        return std::string(source_.substr(begin, size > end.size() ? size - end.size() : 0));
    }

    std::string_view source_;
    std::size_t at_ = 0;
};

using Found = std::map<std::string, std::string>;

void add_operators(std::string_view source, Found& found) {
    Literals(source).visit([&](const std::string& text) {
        if (const auto schema = parse_schema(text); schema && schema->op_namespace.empty()) {
            found.emplace(schema->name, schema->text);
        }
    });
}

std::vector<MappedOperator> listed(const Found& found) {
    std::vector<MappedOperator> operators;
    for (const auto& [name, text] : found) {
        operators.push_back({name, text});
    }
    return operators;
}

}  // namespace

std::vector<MappedOperator> operators_in_source(std::string_view source) {
    Found found;
    add_operators(source, found);
    return listed(found);
}

std::vector<MappedOperator> operators_of_bindings(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::recursive_directory_iterator entry(folder, error), end;
         !error && entry != end && files.size() < most_bindings; entry.increment(error)) {
        static const std::set<std::string> extensions{".cpp", ".cc", ".cxx", ".cu"};
        std::error_code ignored;
        if (extensions.contains(entry->path().extension().string()) &&
            entry->is_regular_file(ignored) && entry->file_size(ignored) <= largest_binding) {
            files.push_back(entry->path());
        }
    }
    std::sort(files.begin(), files.end());
    Found found;
    for (const fs::path& file : files) {
        try {
            const auto text = base::read_file(file, "C++ source", largest_binding);
            if (text.find("TORCH_LIBRARY") != std::string::npos) {
                add_operators(text, found);
            }
        } catch (const Error&) {
            continue;  // operators are learned from what can be read
        }
    }
    return listed(found);
}

}  // namespace twinkle::kernel
